package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestWhatEndedAProcessIsKnownByItsExitAndTheTimeItTook(t *testing.T) {
	const grace = 5 * time.Second
	for _, c := range []struct {
		closed mcppool.SessionClosedInfo
		want   string
	}{
		{mcppool.SessionClosedInfo{Exit: "exit status 0", Took: grace - 1}, "input"},
		{mcppool.SessionClosedInfo{Exit: "exit status 1", Took: time.Millisecond}, "input"},
		{mcppool.SessionClosedInfo{Exit: "exit status 0", Took: grace}, "sigterm"},
		{mcppool.SessionClosedInfo{Exit: "signal: terminated", Took: grace}, "sigterm"},
		{mcppool.SessionClosedInfo{Exit: "signal: killed", Took: 9 * time.Second}, "kill"},
		{mcppool.SessionClosedInfo{Took: 10 * time.Second}, "kill"},
		{mcppool.SessionClosedInfo{Exit: "exit status 3", Reason: mcppool.ReasonCrashed}, "itself"},
	} {
		o := observer{grace: grace, closed: &c.closed}
		require.Equal(t, c.want, o.endedBy(), "%+v", c.closed)
	}
}

package mcppool_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestTheEndOfAProcessIsTracedBeforeThatOfItsSession(t *testing.T) {
	started, told := make(chan int, 1), make(chan any, 2)
	p := realPool(t, &mcppool.Options{Trace: &mcppool.Trace{
		ProcessStarted: func(_ context.Context, _ mcppool.Origin, pid int) { started <- pid },
		ProcessEnded:   func(_ mcppool.Origin, done mcppool.ProcessDone) { told <- done },
		SessionClosed:  func(_ mcppool.Origin, why mcppool.CloseReason, _ time.Duration) { told <- why },
	}})
	srv := real(t, "state")
	require.Equal(t, "[x]", say(t, p, srv, "A", "note", map[string]any{"text": "x"}))
	p.CloseServer(srv)
	done := (<-told).(mcppool.ProcessDone)
	require.Equal(t, <-started, done.PID)
	require.Equal(t, "exit status 0", done.Exit)
	require.NoError(t, done.Err)
	require.Positive(t, done.Took)
	require.Equal(t, mcppool.ReasonServerClosed, <-told)
}

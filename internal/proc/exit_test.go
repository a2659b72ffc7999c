package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

func TestExitReadsLikeAShellSaysIt(t *testing.T) {
	for want, exit := range map[string]proc.Exit{
		"exit status 0":       {},
		"exit status 3":       {Code: 3},
		"exit status unknown": {Code: -1},
		"signal: killed":      {Code: -1, Signal: "killed", Requested: true},
		"signal: segmentation fault (core dumped)": {Code: -1, Signal: "segmentation fault", CoreDump: true},
	} {
		require.Equal(t, want, exit.String())
	}
}

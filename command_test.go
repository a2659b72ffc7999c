package mcppool_test

import (
	"errors"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

func TestCommandMayChangeHowEveryProcessIsStarted(t *testing.T) {
	var starts atomic.Int64
	p := realPool(t, &mcppool.Options{Command: func(from mcppool.Origin, srv mcppool.Server, cmd *exec.Cmd) error {
		starts.Add(1)
		cmd.Env = append(cmd.Env, "GIVEN="+from.Scope+" "+srv.Env[modeEnv])
		srv.Env[modeEnv] = "its own copy"
		return nil
	}})
	srv := real(t, "state")
	given := map[string]any{"name": "GIVEN"}
	require.Equal(t, "a state", say(t, p, srv, "a", "getenv", given))
	require.Equal(t, " state", say(t, p, srv, "", "getenv", given))
	require.NoError(t, p.Prewarm(t.Context(), real(t, "state", "OTHER", "1"), 1))
	require.EqualValues(t, 3, starts.Load())
}

func TestCommandIsCalledForTheSecondStartOfAConnectToo(t *testing.T) {
	var starts atomic.Int64
	p := realPool(t, &mcppool.Options{Command: func(mcppool.Origin, mcppool.Server, *exec.Cmd) error {
		starts.Add(1)
		return nil
	}})
	say(t, p, mcppooltest.Server(t, "strict"), "s", "count", nil)
	require.EqualValues(t, 2, starts.Load())
}

func TestErrorOfCommandFailsTheStart(t *testing.T) {
	reason := errors.New("no box for this one")
	p := realPool(t, &mcppool.Options{Command: func(mcppool.Origin, mcppool.Server, *exec.Cmd) error { return reason }})
	_, err := p.CallTool(t.Context(), real(t, "state"), mcppool.Call{Tool: "pid", Scope: "s"})
	var start *mcppool.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, "start", start.Phase)
	require.ErrorIs(t, err, reason)
	require.True(t, mcppool.SafeToRetry(err))
}

func TestPanicOfCommandFailsTheStart(t *testing.T) {
	p := realPool(t, &mcppool.Options{Command: func(mcppool.Origin, mcppool.Server, *exec.Cmd) error { panic("oops") }})
	_, err := p.CallTool(t.Context(), real(t, "state"), mcppool.Call{Tool: "pid", Scope: "s"})
	require.ErrorContains(t, err, "Options.Command panicked")
}

func TestWhatCommandAddsToTheEnvironmentIsSecret(t *testing.T) {
	p := realPool(t, &mcppool.Options{Command: func(_ mcppool.Origin, _ mcppool.Server, cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, "TOKEN=hunter2secret")
		return nil
	}})
	_, err := p.CallTool(t.Context(), real(t, "exits at once"), mcppool.Call{Tool: "pid", Scope: "s"})
	require.ErrorContains(t, err, "token is")
	require.NotContains(t, err.Error(), "hunter2secret")
}

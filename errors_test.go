package mcppool_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestCallerWhoseTimeEndsInAWaitIsToldWhatItWaitedFor(t *testing.T) {
	exclusive := mcppool.Server{Command: "x", Policy: mcppool.Policy{Mode: mcppool.Exclusive}}
	for name, tc := range map[string]struct {
		first, second mcppool.Server
		scope         string // of the second
		limits        mcppool.Limits
		want          mcppool.WaitError
		text          string
	}{
		"turn": {
			stdio, stdio, "s", mcppool.Limits{},
			mcppool.WaitError{For: mcppool.WaitTurn}, "waited 1s for another call of the session",
		},
		"limit": {
			stdio, other(1), "s", mcppool.Limits{MaxProcesses: 1},
			mcppool.WaitError{For: mcppool.WaitLimit, Limit: "MaxProcesses"}, "waited 1s at the limit MaxProcesses",
		},
		"exclusive": {
			exclusive, exclusive, "other", mcppool.Limits{},
			mcppool.WaitError{For: mcppool.WaitLimit, Limit: "Policy.Mode"}, "waited 1s for another scope to be done with the server, which is exclusive",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &fakes{call: slowCalls(time.Hour)}, &mcppool.Options{Limits: tc.limits})
				first := after(func() error { return call(t.Context(), p, tc.first, "s") })
				synctest.Wait()
				err := call(within(t, time.Second), p, tc.second, tc.scope)
				var got *mcppool.WaitError
				require.ErrorAs(t, err, &got)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.True(t, mcppool.SafeToRetry(err))
				tc.want.Server, tc.want.Took, tc.want.Err = tc.second.String(), time.Second, context.DeadlineExceeded
				require.Equal(t, tc.want, *got)
				require.EqualError(t, err, `mcppool: tool "t" on `+tc.second.String()+": "+tc.text+": context deadline exceeded")
				require.NoError(t, <-first)
			})
		})
	}
}

func TestCallerWhoGivesUpASlowStartIsToldHowFarItHadCome(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "explains its slow start")
	ctx, cancel := context.WithCancel(t.Context())
	failed := after(func() error { return call(ctx, p, srv, "s") })
	var seen mcppool.SessionInfo
	require.Eventually(t, func() bool {
		for s := range p.Sessions() {
			seen = s
		}
		return strings.Contains(seen.Stderr, "waiting for the database")
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, "connecting", seen.State)
	require.Positive(t, seen.PID)
	require.NotEqual(t, os.Getpid(), seen.PID)
	cancel()
	err := <-failed
	var wait *mcppool.WaitError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, seen.PID, wait.PID)
	require.Contains(t, wait.Stderr, "waiting for the database")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "has not answered yet: context canceled; stderr: waiting for the database")
}

func TestTextsOfErrorsAreShortLinesAndTheTailsAreInTheirFields(t *testing.T) {
	tail := strings.Repeat("\x1b[31m a request with its arguments: "+strings.Repeat("x", 100)+"\n", 80) + "Error: no key\n   at main\n"
	for _, err := range []error{
		&mcppool.StartError{Server: "s", Phase: "connect", Exit: "exit status 1", Stderr: tail, Stdout: tail, Err: context.Canceled},
		&mcppool.SessionLostError{Server: "s", Exit: "exit status 1", Stderr: tail, Err: context.Canceled},
		&mcppool.WaitError{Server: "s", For: mcppool.WaitConnect, PID: 1, Stderr: tail, Err: context.Canceled},
	} {
		require.Less(t, len(err.Error()), 300)
		require.NotContains(t, err.Error(), "\n")
		require.NotContains(t, err.Error(), "\x1b")
		require.NotContains(t, err.Error(), "request")
		require.ErrorContains(t, err, "; stderr: Error: no key")
	}
}

func TestBackoffTellsNoCallerWhatAServerWroteForAnother(t *testing.T) {
	p := realPool(t, &mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}})
	srv := leaky(t)
	_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "die", Scope: "a"})
	var lost *mcppool.SessionLostError
	require.ErrorAs(t, err, &lost)
	require.NotEmpty(t, lost.Stderr)
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, 10*time.Second, time.Millisecond)
	_, err = p.CallTool(t.Context(), srv, mcppool.Call{Tool: "tell", Scope: "b"})
	var held *mcppool.StartError
	require.ErrorAs(t, err, &held)
	require.Positive(t, held.RetryAfter)
	require.Equal(t, lost.Exit, held.Exit)
	require.Empty(t, held.Stderr+held.Stdout)
	require.NotContains(t, err.Error(), "stderr")
}

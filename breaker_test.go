package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

var backoff = mcppool.Backoff{Failures: 2, Initial: 8 * time.Second, Max: 30 * time.Second, MinUptime: 10 * time.Second}

// heldOff requires that err says that the server is held off, and for how long.
func heldOff(t *testing.T, err error) time.Duration {
	t.Helper()
	var start *mcppool.StartError
	require.ErrorAs(t, err, &start)
	require.Positive(t, start.RetryAfter)
	require.True(t, mcppool.SafeToRetry(err))
	return start.RetryAfter
}

func TestServerThatKeepsFailingIsHeldOffForAllScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no such module")
		f := &fakes{connectErr: cause}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for _, scope := range []string{"a", "b"} {
			require.ErrorIs(t, call(t.Context(), p, stdio, scope), cause)
		}
		err := call(t.Context(), p, stdio, "c")
		pause := heldOff(t, err)
		require.ErrorIs(t, err, cause, "it says what failed last")
		require.LessOrEqual(t, pause, 8*time.Second)
		require.GreaterOrEqual(t, pause, 6*time.Second, "a quarter less at most")
		require.Equal(t, 2, f.dialed())
		require.ErrorIs(t, call(t.Context(), p, other(1), "c"), cause)
		require.Equal(t, 3, f.dialed(), "another server isn't concerned")

		time.Sleep(pause - 1)
		heldOff(t, call(t.Context(), p, stdio, "c"))
		time.Sleep(1)
		require.ErrorIs(t, call(t.Context(), p, stdio, "c"), cause)
		require.Equal(t, 4, f.dialed(), "one attempt")
		pause = heldOff(t, call(t.Context(), p, stdio, "c"))
		require.GreaterOrEqual(t, pause, 12*time.Second, "twice the pause, less a quarter")
	})
}

func TestOneAttemptAtATimeFollowsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectErr: errors.New("broken")}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for range 2 {
			require.Error(t, call(t.Context(), p, stdio, "s"))
		}
		time.Sleep(8 * time.Second)
		f.connectErr, f.connectTime = nil, time.Second
		trial := after(func() error { return call(t.Context(), p, stdio, "a") })
		synctest.Wait()
		heldOff(t, call(t.Context(), p, stdio, "b"))
		joins := after(func() error { return call(t.Context(), p, stdio, "a") })
		require.NoError(t, <-trial)
		require.NoError(t, <-joins)
		require.NoError(t, call(t.Context(), p, stdio, "b"), "it holds")
	})
}

func TestAttemptThatIsGivenUpSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectErr: errors.New("broken")}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for range 2 {
			require.Error(t, call(t.Context(), p, stdio, "s"))
		}
		time.Sleep(8 * time.Second)
		f.connectErr, f.connectTime = nil, time.Hour
		require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
		synctest.Wait()
		f.connectTime = 0
		require.NoError(t, call(t.Context(), p, stdio, "s"), "the next attempt is free")
	})
}

func TestSessionsThatDieSoonCountAsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.die()
			return nil, errors.New("EOF")
		}}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for range 2 {
			require.ErrorIs(t, call(t.Context(), p, stdio, "s"), mcppool.ErrSessionLost)
		}
		synctest.Wait()
		err := call(t.Context(), p, stdio, "s")
		heldOff(t, err)
		require.ErrorContains(t, err, "the process ended")
		require.Len(t, f.all(), 2)
	})
}

func TestSustainedUptimeStartsAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for range 5 {
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			time.Sleep(10 * time.Second)
			clients := f.all()
			clients[len(clients)-1].die()
		}
		require.NoError(t, call(t.Context(), p, stdio, "s"), "each lived long enough")
	})
}

// Each chat's start put off when the server was to be trusted, so that it never was.
func TestServerOfWhichOneStartInTwentyFailsIsNotHeldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for i := range 200 {
			f.connectErr = nil
			if i%20 == 19 {
				f.connectErr = errors.New("no luck")
			}
			require.ErrorIs(t, call(t.Context(), p, stdio, fmt.Sprint(i)), f.connectErr)
			time.Sleep(time.Second)
		}
		require.Equal(t, 200, f.dialed())
	})
}

func TestServerOfWhichOneSessionInTwentyDiesSoonIsNotHeldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for i := range 200 {
			require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
			if i%20 == 19 {
				all := f.all()
				all[len(all)-1].die()
			}
			time.Sleep(time.Second)
		}
	})
}

func TestStartsThatFailTogetherBringTheFirstPauseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 100 * time.Millisecond, connectErr: errors.New("the database restarts")}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		var ends []<-chan error
		for i := range 50 {
			ends = append(ends, after(func() error { return call(t.Context(), p, stdio, fmt.Sprint(i)) }))
		}
		for _, end := range ends {
			require.ErrorIs(t, <-end, f.connectErr)
		}
		require.LessOrEqual(t, heldOff(t, call(t.Context(), p, stdio, "s")), backoff.Initial)
	})
}

func TestFailedToolsTimeoutsAndBadInputNeverHoldAServerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, &mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}})
		for range 3 {
			require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
			require.Error(t, call(t.Context(), p, mcppool.Server{Command: "x", Args: []string{"\x00"}}, "s"))
		}
		f.call = func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, mcp.ErrInternalError
		}
		for range 3 {
			require.ErrorIs(t, call(t.Context(), p, stdio, "s"), mcp.ErrInternalError)
		}
		var bad *mcppool.ConfigError
		require.ErrorAs(t, call(t.Context(), p, mcppool.Server{Command: "x", Args: []string{"\x00"}}, "s"), &bad)
	})
}

func TestResetServerStartsClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectErr: errors.New("broken")}
		p := newPool(t, f, &mcppool.Options{Backoff: backoff})
		for range 2 {
			require.Error(t, call(t.Context(), p, stdio, "s"))
		}
		heldOff(t, call(t.Context(), p, stdio, "s"))
		p.ResetBackoff(stdio)
		f.connectErr = nil
		require.NoError(t, call(t.Context(), p, stdio, "s"))
	})
}

func TestWithoutBackoffEveryCallTriesAgain(t *testing.T) {
	f := &fakes{connectErr: errors.New("broken")}
	p := newPool(t, f, nil)
	for range 10 {
		require.Error(t, call(t.Context(), p, stdio, "s"))
	}
	require.Equal(t, 10, f.dialed())
}

func TestBackoffRemembersABoundedNumberOfServers(t *testing.T) {
	f := &fakes{connectErr: errors.New("broken")}
	p := newPool(t, f, &mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}})
	for i := range 1200 {
		require.Error(t, call(t.Context(), p, other(i), "s"))
	}
	require.Equal(t, 1024, mcppool.Backoffs(p))
}

// Callers that had been queued before their server failed started it one after the
// other, whatever its pause.
func TestServerThatIsHeldOffIsNotStartedFromTheQueueEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, connectErr: errors.New("no luck")}
		p := newPool(t, f, &mcppool.Options{
			Backoff: mcppool.Backoff{Failures: 1, Initial: time.Minute, Max: time.Minute},
			Limits:  mcppool.Limits{MaxProcesses: 1},
		})
		start := time.Now()
		var ends []<-chan error
		for i := range 100 {
			ends = append(ends, after(func() error { return call(t.Context(), p, stdio, fmt.Sprint(i)) }))
		}
		for _, end := range ends {
			var failed *mcppool.StartError
			require.ErrorAs(t, <-end, &failed)
		}
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 1, f.dialed())
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

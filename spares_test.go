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

func withSpares(n int) mcppool.Server {
	srv := stdio
	srv.Policy.Spares = n
	return srv
}

func TestSpareServesTheFirstCallOfAScopeAtOnceAndIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, withSpares(2), "first"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Spares)
		start := time.Now()
		require.NoError(t, call(t.Context(), p, withSpares(2), "second"))
		require.NoError(t, call(t.Context(), p, withSpares(2), ""), "one-shot calls take them too")
		require.Zero(t, time.Since(start))
		require.Zero(t, p.Stats().Spares)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Spares)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestSpareIsHandedToOneScopeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		require.NoError(t, p.Prewarm(t.Context(), stdio, 3))
		for i := range 5 {
			require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
		}
		require.Equal(t, 5, f.dialed(), "three spares and two cold starts")
		for _, c := range f.all() {
			require.Equal(t, 1, c.served())
		}
		require.Equal(t, 5, p.Stats().Kept)
	})
}

func TestPrewarmWaitsForItsSparesAndCountsThoseThatAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		start := time.Now()
		one := after(func() error { return p.Prewarm(t.Context(), stdio, 2) })
		synctest.Wait()
		require.NoError(t, p.Prewarm(t.Context(), stdio, 2))
		require.NoError(t, <-one)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 2, f.dialed())
		require.ErrorIs(t, p.Prewarm(within(t, time.Second/2), stdio, 3), context.DeadlineExceeded)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 3, p.Stats().Spares, "it went on")
	})
}

func TestPrewarmSaysWhatFailed(t *testing.T) {
	cause := errors.New("no such module")
	f := &fakes{connectErr: cause}
	p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
	require.ErrorIs(t, p.Prewarm(t.Context(), stdio, 1), cause)
	var bad *mcppool.ConfigError
	require.ErrorAs(t, p.Prewarm(t.Context(), mcppool.Server{URL: "http://h/"}, 1), &bad)
	f.connectErr = nil
	require.NoError(t, p.Shutdown(t.Context()))
	require.ErrorIs(t, p.Prewarm(t.Context(), stdio, 1), mcppool.ErrClosed)

	full := newPool(t, &fakes{}, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
	require.ErrorIs(t, full.Prewarm(t.Context(), stdio, 2), mcppool.ErrBusy)
	require.Equal(t, 1, full.Stats().Spares)
}

func TestSparesAreGivenUpBeforeIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2}})
		require.NoError(t, call(t.Context(), p, stdio, "kept"))
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		require.NoError(t, call(t.Context(), p, other(1), "s"))
		synctest.Wait()
		require.Equal(t, []int{0, 1, 0}, f.closed())
	})
}

func TestSparesAreNotRefilledWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2}})
		var calls []<-chan error
		for i := range 6 {
			calls = append(calls, after(func() error { return call(t.Context(), p, withSpares(5), fmt.Sprint(i)) }))
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		synctest.Wait()
		require.LessOrEqual(t, p.Stats().Processes, 2)
		require.Equal(t, 6, f.dialed(), "no start was spent on a spare")
	})
}

func TestSparesExpireLikeIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute})
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		require.Equal(t, 1, p.Stats().Spares)
		time.Sleep(1)
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
	})
}

func TestSpareThatDiedIsNotHandedOut(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
	f.all()[0].die()
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Equal(t, 2, f.dialed())
	require.Zero(t, f.all()[0].served())
}

func TestSparesOfAClosedServerAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		connecting := after(func() error { return p.Prewarm(t.Context(), stdio, 2) })
		synctest.Wait()
		p.CloseServer(stdio)
		require.ErrorIs(t, <-connecting, mcppool.ErrServerClosed)
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		p.RetireServer(stdio)
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
	})
}

func TestSparesAreNotRefilledForAServerThatWasClosedDuringTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, nil)
		c := after(func() error { return call(t.Context(), p, withSpares(2), "s") })
		synctest.Wait()
		p.CloseServer(stdio)
		require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
	})
}

func TestSparesAreRefilledWhenTheLastSessionOfTheServerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		f.call = func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.die()
			time.Sleep(time.Second)
			return mcp.NewToolResultText("last words"), nil
		}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, withSpares(2), "s"))
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Spares)
	})
}

// The group of a server without sessions is forgotten, and spares were counted in
// the forgotten one: the pool started them without end, its lock held.
func TestSparesOfAServerThatDoesNotStartAreNotStartedWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectErr: errors.New("no luck")}
		p := newPool(t, f, nil)
		var start *mcppool.StartError
		require.ErrorAs(t, call(t.Context(), p, withSpares(2), "s"), &start)
		synctest.Wait()
		require.Equal(t, 1, f.dialed(), "a server that doesn't start gets no spares")
		require.Zero(t, p.Stats().Open)
	})
}

// It was told that all was well, though nothing had come up.
func TestPrewarmFailsWhenItsConnectsAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*mcppool.Pool)
		want error
	}{
		"retired":  {func(p *mcppool.Pool) { p.RetireServer(stdio) }, mcppool.ErrServerClosed},
		"shutdown": {func(p *mcppool.Pool) { _ = p.Shutdown(context.Background()) }, mcppool.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &fakes{connectTime: time.Minute, stubborn: true}, nil)
				start := time.Now()
				end := after(func() error { return p.Prewarm(t.Context(), stdio, 2) })
				synctest.Wait()
				ended := after(func() error { c.end(p); return nil })
				require.ErrorIs(t, <-end, c.want)
				require.Zero(t, time.Since(start))
				<-ended
			})
		})
	}
}

// What the log says of a new spare was read while the spare was handed out.
func TestSpareThatIsHandedOutAtOnceIsLoggedWithoutARace(t *testing.T) {
	for range 50 { // the race detector has to see it
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &fakes{connectTime: time.Second}, nil)
			end := after(func() error { return p.Prewarm(t.Context(), stdio, 1) })
			time.Sleep(time.Second)
			require.NoError(t, call(t.Context(), p, stdio, ""))
			require.NoError(t, <-end)
		})
	}
}

func TestSpareIsKeptAsTheCallThatTakesItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer, c.sleep(ctx, time.Second)
		}}
		p := newPool(t, f, nil)
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		probed := stdio
		probed.Policy.AfterAbandon = mcppool.AbandonProbe
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, call(ctx, p, probed, "s"), context.DeadlineExceeded)
		require.NoError(t, call(t.Context(), p, probed, "s"))
		require.Equal(t, 1, f.dialed(), "the session was kept, and probed")
	})
}

package mcppool_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// slowCalls makes every call take d.
func slowCalls(d time.Duration) func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := c.sleep(ctx, d); err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(req.Params.Name), nil
	}
}

func TestCallPastItsDeadlineReturnsOnTimeAndDiscardsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(500 * time.Millisecond)}
		p := newPool(t, f, nil)
		start := time.Now()
		err := call(within(t, 50*time.Millisecond), p, stdio, "s")
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, mcppool.SafeToRetry(err))
		require.ErrorContains(t, err, `tool "t"`)
		require.ErrorContains(t, err, "waiting for the answer")
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
		require.Zero(t, mcppool.Remembered(p))
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 2)
	})
}

func TestLongCallWithoutDeadlineIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(24 * time.Hour)}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 1)
		require.Equal(t, 1, p.Stats().Kept)
	})
}

func TestCallerThatGivesUpAConnectReturnsOnTime(t *testing.T) {
	for name, tc := range map[string]struct {
		ctx  func(t *testing.T) context.Context
		want error
		at   time.Duration
	}{
		"cancelled": {func(t *testing.T) context.Context {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx
		}, context.Canceled, 100 * time.Millisecond},
		"deadline": {func(t *testing.T) context.Context {
			t.Helper()
			return within(t, 200*time.Millisecond)
		}, context.DeadlineExceeded, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{connectTime: 5 * time.Second}
				p := newPool(t, f, nil)
				ctx := tc.ctx(t)
				start := time.Now()
				err := call(ctx, p, stdio, "s")
				require.Equal(t, tc.at, time.Since(start))
				require.ErrorIs(t, err, tc.want)
				require.True(t, mcppool.SafeToRetry(err))
				synctest.Wait()
				require.Zero(t, mcppool.Remembered(p))
				require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonAbandoned])
			})
		})
	}
}

func TestConnectThatTimesOutByItselfFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectErr: fmt.Errorf("handshake: %w", context.DeadlineExceeded)}
		p := newPool(t, f, nil)
		start := time.Now()
		err := call(within(t, 30*time.Second), p, stdio, "s")
		require.Zero(t, time.Since(start))
		var failed *mcppool.StartError
		require.ErrorAs(t, err, &failed)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "it isn't the caller's deadline")
	})
}

func TestConnectTimeoutEndsAConnectThatOthersWouldWaitForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Hour}
		p := newPool(t, f, &mcppool.Options{ConnectTimeout: time.Minute})
		start := time.Now()
		hasty := stdio
		hasty.Policy.ConnectTimeout = time.Second
		require.ErrorContains(t, call(t.Context(), p, hasty, "s"), "no connection within 1s")
		require.Equal(t, time.Second, time.Since(start))

		start = time.Now()
		err := call(t.Context(), p, stdio, "s")
		require.Equal(t, time.Minute, time.Since(start))
		var failed *mcppool.StartError
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, "no connection within 1m0s")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestWaiterBehindASlowConnectReturnsOnItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		start := time.Now()
		first := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		cancelled := after(func() error { return call(ctx, p, stdio, "s") })
		late := after(func() error { return call(within(t, 200*time.Millisecond), p, stdio, "s") })
		require.ErrorIs(t, <-cancelled, context.Canceled)
		require.ErrorIs(t, <-late, context.DeadlineExceeded)
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		require.NoError(t, <-first)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 1, f.dialed())
	})
}

func TestCallWhoseContextIsOverStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, scope := range []string{"", "s"} {
			err := call(ctx, p, stdio, scope)
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, mcppool.SafeToRetry(err))
			require.ErrorIs(t, p.Do(ctx, stdio, mcppool.Borrow{Scope: scope}, nil), context.Canceled)
		}
		synctest.Wait()
		require.Zero(t, p.Stats().Connects)
	})
}

func TestCallThatWasNotSentSparesItsSession(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakes{call: func(ctx context.Context, _ *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		cancel()
		return nil, mcppool.MarkNotSent(ctx.Err())
	}}
	p := newPool(t, f, nil)
	err := call(ctx, p, stdio, "s")
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, mcppool.SafeToRetry(err))
	require.Equal(t, 1, p.Stats().Kept)
}

func TestConnectThatIgnoresItsCancellationLeavesNoOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, stubborn: true}
		p := newPool(t, f, nil)
		// The abort lands at the very moment of the completion.
		err := call(within(t, time.Second), p, stdio, "tie")
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		err = call(within(t, time.Second-1), p, stdio, "before")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		p.CloseIdle(0)
		synctest.Wait()
		require.Equal(t, []int{1, 1}, f.closed())
		require.Zero(t, mcppool.Remembered(p))
	})
}

func TestWaiterForTheCallLockThatTimesOutLeavesTheSessionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		slow := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		start := time.Now()
		err := call(within(t, 100*time.Millisecond), p, stdio, "s")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, mcppool.SafeToRetry(err))
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		require.NoError(t, <-slow)
		synctest.Wait()
		require.Equal(t, []int{0}, f.closed())
		require.Equal(t, 1, p.Stats().Kept)
	})
}

func TestOneDeadlineSpansConnectAndCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 400 * time.Millisecond, call: slowCalls(500 * time.Millisecond)}
		p := newPool(t, f, nil)
		start := time.Now()
		err := call(within(t, 600*time.Millisecond), p, stdio, "s")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 600*time.Millisecond, time.Since(start))
	})
}

func TestConnectGoesOnForThoseThatStillWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		first, leave := context.WithCancel(t.Context())
		gone := after(func() error { return call(first, p, stdio, "s") })
		synctest.Wait()
		var others []<-chan error
		for range 4 {
			others = append(others, after(func() error { return call(t.Context(), p, stdio, "s") }))
		}
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-gone, context.Canceled)
		for _, c := range others {
			require.NoError(t, <-c)
		}
		require.Equal(t, 1, f.dialed())
	})
}

func TestConnectIsAbortedOnlyWhenTheLastWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var aborted time.Time
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, _ mcppool.Server) (mcppool.Client, error) {
			<-ctx.Done()
			aborted = time.Now()
			return nil, ctx.Err()
		}})
		start := time.Now()
		var calls []<-chan error
		for i := range 5 {
			calls = append(calls, after(func() error {
				return call(within(t, time.Duration(i+1)*time.Second), p, stdio, "s")
			}))
		}
		for _, c := range calls {
			require.ErrorIs(t, <-c, context.DeadlineExceeded)
		}
		synctest.Wait()
		require.Equal(t, 5*time.Second, aborted.Sub(start))
	})
}

func TestNewCallAfterAnAbortedConnectStartsAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, stubborn: true}
		p := newPool(t, f, nil)
		require.ErrorIs(t, call(within(t, 100*time.Millisecond), p, stdio, "s"), context.DeadlineExceeded)
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed())
	})
}

func TestDialSeesTheValuesOfTheCallerButNotItsEnd(t *testing.T) {
	type tracing struct{}
	f := &fakes{}
	var value any
	var life context.Context
	p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		value, life = ctx.Value(tracing{}), ctx
		return f.dial(ctx, srv)
	}})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), tracing{}, "id"))
	require.NoError(t, call(ctx, p, stdio, "s"))
	cancel()
	require.Equal(t, "id", value)
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 1)
	_, ok := life.Deadline()
	require.True(t, ok, "ConnectTimeout")
}

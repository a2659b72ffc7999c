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

// inOrder makes four calls of one scope, each when the one before has found its session,
// and returns them.
func inOrder(ctx context.Context, p *mcppool.Pool) (calls []<-chan error) {
	for i := range 4 {
		calls = append(calls, after(func() error {
			_, err := p.CallTool(ctx, stdio, mcppool.Call{Tool: fmt.Sprint(i), Scope: "s"})
			return err
		}))
		synctest.Wait()
	}
	return calls
}

// served waits for calls, and returns the tools that were called, in order.
func served(t *testing.T, f *fakes, calls []<-chan error) (tools []string) {
	t.Helper()
	for _, c := range calls {
		require.NoError(t, <-c)
	}
	for _, c := range f.all() {
		tools = append(tools, c.calls...)
	}
	return tools
}

func TestCallsKeepTheirOrderWhateverBecomesOfTheConnectTheyWaitFor(t *testing.T) {
	for name, c := range map[string]struct {
		opts mcppool.Options
		do   func(ctx context.Context, p *mcppool.Pool, f *fakes) []<-chan error
	}{
		"a spare comes up": {do: func(ctx context.Context, p *mcppool.Pool, _ *fakes) []<-chan error {
			go func() { _ = p.Prewarm(ctx, stdio, 1) }()
			synctest.Wait()
			return inOrder(ctx, p)
		}},
		"a spare comes up at a limit": {
			opts: mcppool.Options{Limits: mcppool.Limits{MaxStarting: 1}},
			do: func(ctx context.Context, p *mcppool.Pool, _ *fakes) []<-chan error {
				other := after(func() error { return call(ctx, p, other(1), "other") })
				synctest.Wait()
				calls := inOrder(ctx, p)
				go func() { _ = p.Prewarm(ctx, stdio, 1) }()
				return append(calls, other)
			},
		},
		"retired": {do: func(ctx context.Context, p *mcppool.Pool, _ *fakes) []<-chan error {
			calls := inOrder(ctx, p)
			p.RetireServer(stdio)
			return calls
		}},
		"retired as it comes up": {do: func(ctx context.Context, p *mcppool.Pool, _ *fakes) []<-chan error {
			calls := inOrder(ctx, p)
			time.Sleep(time.Second)
			p.RetireServer(stdio)
			return calls
		}},
		"dead on arrival": {do: func(ctx context.Context, p *mcppool.Pool, f *fakes) []<-chan error {
			calls := inOrder(ctx, p)
			f.next(1, nil)
			return calls
		}},
		"fails as a spare": {do: func(ctx context.Context, p *mcppool.Pool, f *fakes) []<-chan error {
			f.next(1, errors.New("no luck"))
			go func() { _ = p.Prewarm(ctx, stdio, 1) }()
			synctest.Wait()
			return inOrder(ctx, p)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					f := &fakes{connectTime: time.Second}
					p := newPool(t, f, &c.opts)
					tools := served(t, f, c.do(t.Context(), p, f))
					var order []string
					for _, tool := range tools {
						if tool != "t" {
							order = append(order, tool)
						}
					}
					require.Equal(t, []string{"0", "1", "2", "3"}, order)
				})
			}
		})
	}
}

func TestCallTakesOverASpareThatIsStillConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 2 * time.Second}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, withSpares(1), "first"))
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, call(t.Context(), p, withSpares(1), "second"))
		require.Equal(t, time.Second, time.Since(start), "what the spare's connect still took")
		synctest.Wait()
		require.Equal(t, 3, f.dialed(), "and a spare for the next")
	})
}

func TestStartThatHangsHoldsUpNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		opts := mcppool.Options{Limits: mcppool.Limits{MaxStarting: 1}, Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
			if srv.Command == "hangs" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return f.dial(ctx, srv)
		}}
		p := newPool(t, f, &opts)
		hung := after(func() error { return call(within(t, time.Minute), p, mcppool.Server{Command: "hangs"}, "s") })
		synctest.Wait()
		require.NoError(t, call(within(t, 10*time.Second), p, stdio, "s"))
		require.Error(t, <-hung)
	})
}

func TestNobodysStateIsEvictedForAPlaceThatAnotherTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2}})
		exclusive := mcppool.Server{Command: "exclusive", Policy: mcppool.Policy{Mode: mcppool.Exclusive}}
		y, z := after(func() error { return call(t.Context(), p, other(1), "y") }), after(func() error { return call(t.Context(), p, other(1), "z") })
		synctest.Wait()
		long, cancel := context.WithCancel(t.Context())
		defer cancel()
		f.call = func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer, c.sleep(ctx, time.Hour)
		}
		a, b := after(func() error { return call(long, p, exclusive, "a") }), after(func() error { return call(long, p, exclusive, "b") })
		require.NoError(t, errors.Join(<-y, <-z))
		synctest.Wait()
		require.EqualValues(t, 1, p.Stats().Evicted)
		require.Equal(t, 1, p.Stats().Idle)
		cancel()
		require.Error(t, errors.Join(<-a, <-b))
	})
}

func TestWedgedSessionIsReplacedForCallersWithLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour)}
		p := probing(t, f, mcppool.Options{}, func(ctx context.Context, c *fake) error { return c.sleep(ctx, time.Hour) })
		require.Error(t, call(within(t, time.Second), p, stdio, "s"))
		f.call = nil
		start := time.Now()
		for call(within(t, 900*time.Millisecond), p, stdio, "s") != nil {
			require.Less(t, time.Since(start), time.Minute, "no caller waits for the whole ProbeTimeout")
		}
		require.Equal(t, 5*time.Second, time.Since(start), "ProbeTimeout, from the beginning of the silence")
		require.Len(t, f.all(), 2)
	})
}

func TestDoubtIsSettledBeforeAnybodyNeedsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour)}
		p := probing(t, f, mcppool.Options{}, func(ctx context.Context, c *fake) error { return c.sleep(ctx, time.Hour) })
		require.Error(t, call(within(t, time.Second), p, stdio, "s"))
		f.call = nil
		time.Sleep(12 * time.Second)
		require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonWedged])
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Zero(t, time.Since(start))
	})
}

func TestWhoSharesAWedgedSessionLearnsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		f.call = func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c != f.all()[0] {
				return answer, nil
			}
			return answer, c.sleep(ctx, 12*time.Hour)
		}
		p := probing(t, f, mcppool.Options{}, func(ctx context.Context, c *fake) error { return c.sleep(ctx, time.Hour) })
		srv := shared(true, 0)
		long := after(func() error { return call(t.Context(), p, srv, "a") })
		synctest.Wait()
		start := time.Now()
		require.ErrorIs(t, call(within(t, time.Second), p, srv, "b"), context.DeadlineExceeded)
		next := after(func() error { return call(t.Context(), p, srv, "c") })
		err := <-long
		require.Equal(t, 6*time.Second, time.Since(start))
		require.ErrorIs(t, err, mcppool.ErrSessionLost)
		require.False(t, mcppool.SafeToRetry(err))
		require.NoError(t, <-next, "it waited for the outcome, and got another session")
		synctest.Wait()
		require.EqualValues(t, 1, p.Stats().Outcomes[mcppool.OutcomeLost])
		for _, c := range f.all() {
			c.mu.Lock()
			c.overlap = false // which they may
			c.mu.Unlock()
		}
	})
}

func TestMaxWaitIsForAllLimitsThatACallerWaitsAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Minute, stubborn: true}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1, MaxWait: 10 * time.Second}})
		f.connectTime = 0
		lease, err := p.Acquire(t.Context(), other(1), mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		f.connectTime = time.Minute
		c := after(func() error { return call(t.Context(), p, stdio, "s") })
		start := time.Now()
		time.Sleep(6 * time.Second)
		lease.Discard()
		synctest.Wait()
		p.RetireServer(stdio) // its connect goes on to its end, and keeps the place
		require.ErrorIs(t, <-c, mcppool.ErrBusy)
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

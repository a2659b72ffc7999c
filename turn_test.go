package mcppool_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestCallsThatArriveDuringTheConnectGoInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, call: slowCalls(time.Millisecond)}
		p := newPool(t, f, nil)
		var calls []<-chan error
		for i := range 10 {
			calls = append(calls, after(func() error {
				_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: fmt.Sprint(i), Scope: "s"})
				return err
			}))
			synctest.Wait()
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, f.all()[0].calls)
	})
}

func TestThoseInLineMoveToAReplacedSessionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, nil)
		var calls []<-chan error
		for i := range 6 {
			calls = append(calls, after(func() error {
				_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: fmt.Sprint(i), Scope: "s"})
				return err
			}))
			synctest.Wait()
		}
		start := time.Now()
		p.RetireServer(stdio)
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, []string{"0"}, f.all()[0].calls)
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, f.all()[1].calls)
		require.Equal(t, 5*time.Minute, time.Since(start), "they didn't wait for the call of the old one")
	})
}

func TestThoseInLineLearnOfADeathThatALeaseDoesNotNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		c := after(func() error { return call(within(t, time.Minute), p, stdio, "s") })
		synctest.Wait()
		start := time.Now()
		f.all()[0].die()
		require.NoError(t, <-c)
		require.Zero(t, time.Since(start))
		s.Release()
	})
}

func TestTurnThatTiesWithACancellationIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		first := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		tie := after(func() error { return call(within(t, time.Second), p, stdio, "s") })
		synctest.Wait()
		last := after(func() error { return call(t.Context(), p, stdio, "s") })
		require.NoError(t, <-first)
		require.ErrorIs(t, <-tie, context.DeadlineExceeded)
		require.NoError(t, <-last)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

// busyFor keeps a scope's session going from call to call without a pause.
func busyFor(t *testing.T, p *mcppool.Pool, scope string, d time.Duration) {
	t.Helper()
	end := time.Now().Add(d)
	for range 2 {
		go func() {
			for time.Now().Before(end) {
				if call(t.Context(), p, stdio, scope) != nil {
					return // the pool is closed
				}
			}
		}()
	}
	synctest.Wait()
}

func TestBusyScopeDoesNotStarveTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(100 * time.Millisecond)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		busyFor(t, p, "busy", time.Hour)
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "modest"))
		require.LessOrEqual(t, time.Since(start), 1300*time.Millisecond, "a second's patience, a call's end, and the call")
		require.NoError(t, mcppool.CheckInvariants(p))
		p.Close()
	})
}

func TestSessionThatIsNeverIdleIsRecycledBetweenItsCalls(t *testing.T) {
	for name, recycle := range map[string]mcppool.Recycle{
		"calls": {MaxCalls: 3}, "age": {MaxLifetime: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{call: slowCalls(time.Second)}
				p := newPool(t, f, &mcppool.Options{Recycle: recycle})
				busyFor(t, p, "s", 30*time.Second)
				time.Sleep(time.Minute)
				for _, c := range f.all() {
					require.LessOrEqual(t, c.served(), 4)
				}
				require.GreaterOrEqual(t, len(f.all()), 8)
			})
		})
	}
}

func TestSharedServerAtAFullLimitIsRecycledAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{
			Recycle: mcppool.Recycle{MaxCalls: 3}, Limits: mcppool.Limits{MaxProcesses: 1},
		})
		var calls []<-chan error
		for range 12 {
			calls = append(calls, after(func() error { return call(t.Context(), p, shared(false, 0), "") }))
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		for _, c := range f.all() {
			require.LessOrEqual(t, c.served(), 3)
		}
	})
}

func TestHealthCheckThatOutlastsACallKeepsTheTimeOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := probing(t, f, mcppool.Options{HealthInterval: time.Minute, IdleTimeout: time.Minute + 10*time.Second},
			func(ctx context.Context, c *fake) error { return c.sleep(ctx, 3*time.Second) })
		for i := range 20 { // more than are checked at a time
			require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
		}
		time.Sleep(time.Minute + time.Second) // the check is under way
		var calls []<-chan error
		for i := range 20 {
			calls = append(calls, after(func() error { return call(t.Context(), p, stdio, fmt.Sprint(i)) }))
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 20, p.Stats().Kept)
	})
}

func TestBadInputCostsNobodyItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{}, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		var bad *mcppool.ConfigError
		require.ErrorAs(t, call(t.Context(), p, mcppool.Server{}, "t"), &bad)
		require.ErrorAs(t, p.Prewarm(t.Context(), mcppool.Server{}, 1), &bad)
		synctest.Wait()
		require.Equal(t, 1, p.Stats().Kept)
		require.EqualValues(t, 1, p.Stats().Connects)
	})
}

func TestServerThatIsNotWantedAnyMoreGetsNoSpares(t *testing.T) {
	for name, end := range map[string]func(p *mcppool.Pool, ok *atomic.Bool){
		"retired":      func(p *mcppool.Pool, _ *atomic.Bool) { p.RetireServer(stdio) },
		"check":        func(_ *mcppool.Pool, ok *atomic.Bool) { ok.Store(false) },
		"closed by id": func(p *mcppool.Pool, _ *atomic.Bool) { closeAll(p) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{call: slowCalls(time.Second)}
				p := newPool(t, f, nil)
				var ok atomic.Bool
				ok.Store(true)
				first := after(func() error { return call(t.Context(), p, stdio, "s") })
				synctest.Wait()
				c := after(func() error {
					_, err := p.CallTool(t.Context(), withSpares(2), mcppool.Call{Tool: "t", Scope: "other", Check: ok.Load})
					return err
				})
				synctest.Wait()
				end(p, &ok)
				<-c
				<-first
				synctest.Wait()
				if name != "check" { // there it was asked before
					require.Zero(t, p.Stats().Spares)
				}
			})
		})
	}
}

func closeAll(p *mcppool.Pool) {
	for s := range p.Sessions() {
		p.CloseSession(s.ID)
	}
}

func TestSpareDoesNotAgeBeforeItIsHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: -1, Recycle: mcppool.Recycle{MaxLifetime: time.Hour}})
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		time.Sleep(2 * time.Hour)
		for range 3 {
			require.NoError(t, call(t.Context(), p, stdio, "s"))
		}
		require.Len(t, f.all(), 1)
	})
}

func TestSpareThatComesUpServesTheCallThatWaitsToStartItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 5 * time.Second, closeTime: 3 * time.Second}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		warm := after(func() error { return p.Prewarm(t.Context(), stdio, 1) })
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 4*time.Second, time.Since(start))
		require.NoError(t, <-warm)
		require.Equal(t, 1, f.dialed())
	})
}

func TestServersAtAURLDoNotCountAsStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 30 * time.Second}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxStarting: 1}})
		for range 5 {
			go call(t.Context(), p, mcppool.Server{URL: "http://h/"}, "")
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestPlaceInLineIsKeptByThoseWhoStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			order = append(order, req.Params.Name)
			return mcp.NewToolResultText(""), c.sleep(ctx, time.Second)
		}}
		p := newPool(t, f, nil)
		var calls []<-chan error
		for i := range 5 {
			ctx := t.Context()
			if i%2 == 1 {
				ctx = within(t, time.Second/2)
			}
			calls = append(calls, after(func() error {
				_, err := p.CallTool(ctx, stdio, mcppool.Call{Tool: fmt.Sprint(i), Scope: "s"})
				return err
			}))
			synctest.Wait()
		}
		for i, c := range calls {
			if err := <-c; i%2 == 1 {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, err)
			}
		}
		require.Equal(t, []string{"0", "2", "4"}, order)
	})
}

// The turn of a session that was replaced went to the second in its line, while the
// first was on its way to the successor.
func TestThoseInLineMoveInOrderWhenTheHolderIsWhatReplacesTheSession(t *testing.T) {
	for _, recycle := range []mcppool.Recycle{{}, {MaxCalls: 3}} {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got, want []string
				f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					mu.Lock()
					got = append(got, req.Params.Name)
					mu.Unlock()
					return mcp.NewToolResultText("ok"), c.sleep(ctx, time.Second)
				}}
				p := newPool(t, f, &mcppool.Options{Recycle: recycle})
				var calls []<-chan error
				for i := range 12 {
					name, patience := strconv.Itoa(i), time.Hour
					if i == 0 {
						patience = time.Second / 2 // which costs the session
					}
					want = append(want, name)
					calls = append(calls, after(func() error {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						_, err := p.CallTool(ctx, stdio, mcppool.Call{Tool: name, Scope: "s"})
						return err
					}))
					synctest.Wait()
				}
				for _, c := range calls {
					<-c
				}
				require.Equal(t, want, got)
			})
		}
	}
}

func TestThoseInLineMoveInOrderWhenTheSessionIsLost(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var got, want []string
			f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mu.Lock()
				got = append(got, req.Params.Name)
				mu.Unlock()
				return mcp.NewToolResultText("ok"), c.sleep(ctx, time.Second)
			}}
			p := newPool(t, f, nil)
			var calls []<-chan error
			for i := range 8 {
				name := strconv.Itoa(i)
				want = append(want, name)
				calls = append(calls, after(func() error {
					_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: name, Scope: "s"})
					return err
				}))
				synctest.Wait()
			}
			f.all()[0].die()
			require.ErrorIs(t, <-calls[0], mcppool.ErrSessionLost)
			for _, c := range calls[1:] {
				require.NoError(t, <-c)
			}
			require.Equal(t, want, got)
		})
	}
}

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

// other is a server of its own for each n.
func other(n int) mcppool.Server {
	return mcppool.Server{Command: "server", Args: []string{fmt.Sprint(n)}}
}

func TestProcessesNeverExceedTheirLimitEvenWhileSomeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second), closeTime: 3 * time.Second}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2}})
		start := time.Now()
		var calls []<-chan error
		for i := range 4 {
			calls = append(calls, after(func() error { return call(t.Context(), p, stdio, fmt.Sprint(i)) }))
			synctest.Wait()
		}
		require.Equal(t, 2, p.Stats().Processes)
		require.Equal(t, 2, p.Stats().Waiting)
		// The first two end at 1 s, their processes at 4 s: only then is there room.
		require.NoError(t, <-calls[0])
		time.Sleep(3*time.Second - 1)
		synctest.Wait()
		require.Equal(t, 2, f.dialed())
		time.Sleep(1)
		synctest.Wait()
		require.Equal(t, 4, f.dialed())
		for _, c := range calls[1:] {
			require.NoError(t, <-c)
		}
		require.Equal(t, 5*time.Second, time.Since(start))
		require.EqualValues(t, 2, p.Stats().Closed[mcppool.ReasonEvicted])
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestIdleSessionMakesRoomLeastRecentlyUsedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2}})
		for _, scope := range []string{"a", "b", "a", "c"} {
			require.NoError(t, call(t.Context(), p, stdio, scope))
			time.Sleep(time.Second)
		}
		require.Equal(t, []int{0, 1, 0}, f.closed())
		require.Equal(t, 2, p.Stats().Processes)
	})
}

func TestOneShotsCountAsProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		start := time.Now()
		one := after(func() error { return call(t.Context(), p, stdio, "") })
		two := after(func() error { return call(t.Context(), p, stdio, "") })
		require.NoError(t, <-one)
		require.NoError(t, <-two)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestHTTPServersAreNotProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		busy := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, mcppool.Server{URL: "http://h/"}, ""))
		require.NoError(t, <-busy)
	})
}

func TestStartsAtOnceAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, call: slowCalls(time.Hour)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxStarting: 2}})
		for i := range 5 {
			go call(t.Context(), p, stdio, fmt.Sprint(i))
			synctest.Wait()
		}
		for _, want := range []int{2, 4, 5} {
			require.Equal(t, want, f.dialed())
			time.Sleep(time.Second)
			synctest.Wait()
		}
		p.Close()
	})
}

func TestScopeAndServerHaveLimitsOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		limits mcppool.Limits
		other  func(p *mcppool.Pool) error // another call of the same scope or server
		free   func(p *mcppool.Pool) error // one that isn't
	}{
		"scope": {mcppool.Limits{MaxPerScope: 1},
			func(p *mcppool.Pool) error { return call(context.Background(), p, other(2), "s") },
			func(p *mcppool.Pool) error { return call(context.Background(), p, other(2), "t") }},
		"server": {mcppool.Limits{MaxPerServer: 1},
			func(p *mcppool.Pool) error { return call(context.Background(), p, other(1), "t") },
			func(p *mcppool.Pool) error { return call(context.Background(), p, other(2), "s") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{call: slowCalls(time.Second)}
				p := newPool(t, f, &mcppool.Options{Limits: tc.limits})
				start := time.Now()
				busy := after(func() error { return call(t.Context(), p, other(1), "s") })
				synctest.Wait()
				waits := after(func() error { return tc.other(p) })
				synctest.Wait()
				require.Equal(t, 1, p.Stats().Queued)
				require.NoError(t, tc.free(p))
				require.Equal(t, time.Second, time.Since(start), "the limit concerns nobody else")
				require.NoError(t, <-busy)
				require.NoError(t, <-waits, "the idle session made room")
				require.Equal(t, 2*time.Second, time.Since(start))
				require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonEvicted])
			})
		})
	}
}

func TestScopeWithManyCallsDoesNotStarveTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		start := time.Now()
		for i := range 100 {
			go call(t.Context(), p, other(i), "greedy")
			synctest.Wait()
		}
		modest := after(func() error { return call(t.Context(), p, stdio, "modest") })
		require.NoError(t, <-modest)
		require.LessOrEqual(t, time.Since(start), 3*time.Second, "its turn comes after one of the others")
		p.Close()
	})
}

func TestWaitersOfAScopeAreServedInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			order = append(order, c.srv.Args[0])
			return mcp.NewToolResultText(""), c.sleep(ctx, time.Second)
		}}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		var calls []<-chan error
		for i := range 5 {
			calls = append(calls, after(func() error { return call(t.Context(), p, other(i), "s") }))
			synctest.Wait()
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, order)
	})
}

func TestWaiterThatLeavesFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		start := time.Now()
		busy := after(func() error { return call(t.Context(), p, other(0), "s") })
		synctest.Wait()
		gone := after(func() error { return call(within(t, time.Second/2), p, other(1), "s") })
		synctest.Wait()
		stays := after(func() error { return call(t.Context(), p, other(2), "s") })
		err := <-gone
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, mcppool.SafeToRetry(err))
		require.Equal(t, time.Second/2, time.Since(start))
		require.Equal(t, 1, p.Stats().Waiting)
		require.NoError(t, <-busy)
		require.NoError(t, <-stays)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, 2, f.dialed())
	})
}

func TestGrantThatTiesWithACancellationIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		busy := after(func() error { return call(t.Context(), p, stdio, "") })
		synctest.Wait()
		// Its ctx ends in the moment in which the busy one's place is granted to it.
		tie := after(func() error { return call(within(t, time.Second), p, other(1), "") })
		synctest.Wait()
		last := after(func() error { return call(t.Context(), p, other(2), "") })
		require.NoError(t, <-busy)
		require.Error(t, <-tie)
		require.NoError(t, <-last)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestLimitRefusesWithWhatACallerNeedsToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1, MaxWaiting: 1, MaxWait: 10 * time.Second}})
		busy := after(func() error { return call(t.Context(), p, other(0), "s") })
		synctest.Wait()
		start := time.Now()
		waits := after(func() error { return call(t.Context(), p, other(1), "s") })
		synctest.Wait()
		for _, n := range []int{1, 2} { // one would join the waiting session, the other make its own
			err := call(t.Context(), p, other(n), "s")
			require.Zero(t, time.Since(start))
			require.ErrorIs(t, err, mcppool.ErrBusy)
			require.True(t, mcppool.SafeToRetry(err))
			var full *mcppool.BusyError
			require.ErrorAs(t, err, &full)
			require.Equal(t, "MaxWaiting", full.Limit)
			require.Equal(t, 1, full.Waiting)
			require.Positive(t, full.RetryAfter)
		}
		err := <-waits
		require.Equal(t, 10*time.Second, time.Since(start))
		var full *mcppool.BusyError
		require.ErrorAs(t, err, &full)
		require.Equal(t, "MaxProcesses", full.Limit)
		require.Equal(t, 1, full.Max)
		require.NoError(t, <-busy)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestLimitsCanBeChangedWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		for i := range 3 {
			go call(t.Context(), p, stdio, fmt.Sprint(i))
		}
		synctest.Wait()
		require.Equal(t, 1, f.dialed())
		p.SetLimits(mcppool.Limits{MaxProcesses: 2})
		synctest.Wait()
		require.Equal(t, 2, f.dialed())
		p.SetLimits(mcppool.Limits{})
		synctest.Wait()
		require.Equal(t, 3, f.dialed())
		p.SetLimits(mcppool.Limits{MaxProcesses: 1})
		synctest.Wait()
		require.Equal(t, 3, p.Stats().Processes, "nothing that is busy is ended")
		time.Sleep(time.Second)
		require.NoError(t, call(t.Context(), p, stdio, "new"))
		synctest.Wait()
		require.LessOrEqual(t, p.Stats().Processes, 1)
	})
}

func TestCloseAndShutdownReleaseTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		busy := after(func() error { return call(t.Context(), p, other(0), "s") })
		synctest.Wait()
		closed := after(func() error { return call(t.Context(), p, other(1), "s") })
		drained := after(func() error { return call(t.Context(), p, other(2), "s") })
		synctest.Wait()
		start := time.Now()
		p.CloseServer(other(1))
		require.ErrorIs(t, <-closed, mcppool.ErrServerClosed)
		done := after(func() error { return p.Shutdown(t.Context()) })
		require.ErrorIs(t, <-drained, mcppool.ErrClosed)
		require.Zero(t, time.Since(start))
		require.NoError(t, <-busy)
		require.NoError(t, <-done)
		require.Equal(t, 1, f.dialed())
	})
}

func TestExclusiveServerHasOneProcessAtATimeOverAllScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second), closeTime: 2 * time.Second}
		p := newPool(t, f, nil)
		profile := stdio
		profile.Policy.Mode = mcppool.Exclusive
		start := time.Now()
		a := after(func() error { return call(t.Context(), p, profile, "a") })
		synctest.Wait()
		b := after(func() error { return call(t.Context(), p, profile, "b") })
		require.NoError(t, <-a)
		require.NoError(t, <-b)
		require.Equal(t, 4*time.Second, time.Since(start), "a's call, its close, and b's call")
		require.NoError(t, call(t.Context(), p, profile, "b"))
		require.Len(t, f.all(), 2)
	})
}

func TestManyWaitersCancelInBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		go call(t.Context(), p, stdio, "busy")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var calls []<-chan error
		for i := range 10_000 {
			calls = append(calls, after(func() error { return call(ctx, p, other(i), fmt.Sprint(i%100)) }))
		}
		synctest.Wait()
		require.Equal(t, 10_000, p.Stats().Waiting)
		cancel()
		for _, c := range calls {
			require.ErrorIs(t, <-c, context.Canceled)
		}
		require.Zero(t, p.Stats().Waiting)
		require.NoError(t, mcppool.CheckInvariants(p))
		p.Close()
	})
}

// Who had waited at one limit and then met another was left waiting, though idle
// sessions could have made room there.
func TestWaiterThatMovesOnToAnotherLimitGetsRoomThere(t *testing.T) {
	exclusive := stdio
	exclusive.Policy.Mode = mcppool.Exclusive
	t.Run("from server to scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &fakes{}, &mcppool.Options{Limits: mcppool.Limits{MaxPerScope: 1}})
			require.NoError(t, call(t.Context(), p, exclusive, "other"))
			require.NoError(t, call(t.Context(), p, mcppool.Server{Command: "idle"}, "mine"))
			start := time.Now()
			require.NoError(t, call(within(t, time.Minute), p, exclusive, "mine"))
			require.Zero(t, time.Since(start))
		})
	})
	t.Run("from starting to processes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fakes{connectTime: time.Second}
			p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 2, MaxStarting: 1}})
			start := time.Now()
			var ends []<-chan error
			for _, scope := range []string{"a", "b", "c"} {
				ends = append(ends, after(func() error { return call(within(t, time.Minute), p, stdio, scope) }))
			}
			for _, end := range ends {
				require.NoError(t, <-end)
			}
			require.Equal(t, 3*time.Second, time.Since(start))
		})
	})
}

// A connect that was given up freed its start for newcomers at once, and for those in
// the queue only when what it had brought up was closed.
func TestStartThatIsGivenUpGoesToWhoWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second, closeTime: time.Minute, stubborn: true}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxStarting: 1}})
		start := time.Now()
		gone := after(func() error { return call(within(t, 500*time.Millisecond), p, stdio, "gone") })
		synctest.Wait()
		waits := after(func() error { return call(t.Context(), p, stdio, "waits") })
		synctest.Wait()
		require.ErrorIs(t, <-gone, context.DeadlineExceeded)
		newcomer := after(func() error { return call(t.Context(), p, stdio, "newcomer") })
		require.NoError(t, <-waits)
		require.Equal(t, 2*time.Second, time.Since(start), "the connect that was given up takes a second")
		require.NoError(t, <-newcomer)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

// Who was refused in the moment in which its place became free was told of a limit
// of zero.
func TestGrantThatTiesWithTheEndOfTheWaitWins(t *testing.T) {
	for range 20 { // the runtime chooses who of the two is asked first
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &fakes{call: slowCalls(time.Minute)}, &mcppool.Options{
				Limits: mcppool.Limits{MaxProcesses: 1, MaxWait: time.Second},
			})
			_ = after(func() error { return call(t.Context(), p, stdio, "first") })
			synctest.Wait()
			second := after(func() error { return call(t.Context(), p, stdio, "second") })
			time.Sleep(time.Second)
			p.SetLimits(mcppool.Limits{})
			if err := <-second; err != nil {
				var busy *mcppool.BusyError
				require.ErrorAs(t, err, &busy)
				require.Equal(t, "MaxProcesses", busy.Limit)
				require.Equal(t, 1, busy.Max)
			}
		})
	}
}

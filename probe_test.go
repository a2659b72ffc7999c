package mcppool_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// probed is a fake that can be looked at.
type probed struct {
	*fake
	probe func(ctx context.Context, c *fake) error
}

func (p probed) Probe(ctx context.Context) error { return p.probe(ctx, p.fake) }

// probing makes a pool that probes after an abandoned call.
func probing(t *testing.T, f *fakes, opts mcppool.Options, probe func(ctx context.Context, c *fake) error) *mcppool.Pool {
	t.Helper()
	opts.AfterAbandon = mcppool.AbandonProbe
	opts.Dial = func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		c, err := f.dial(ctx, srv)
		if err != nil {
			return nil, err
		}
		return probed{c.(*fake), probe}, nil
	}
	return newPool(t, f, &opts)
}

func TestAbandonedSessionThatAnswersKeepsItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(context.Context, *fake) error { probes++; return nil })
		for range 3 { // abandoned in a row: no extra starts
			require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
		}
		f.call = nil
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 3, probes, "one before each call after an abandoned one")
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 3, probes, "and none when there is no doubt")
		require.Len(t, f.all(), 1)
	})
}

func TestWedgedSessionIsReplacedAfterTheProbeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{ProbeTimeout: 3 * time.Second}, func(ctx context.Context, c *fake) error {
			return c.sleep(ctx, time.Hour)
		})
		require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
		require.Len(t, f.all(), 1, "nothing is started before it is needed")
		f.call = nil
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, f.all(), 2)
		synctest.Wait()
		require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonWedged])
	})
}

func TestServerThatIsMerelyLateKeepsItsStateWithinTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// It works on one request at a time: the probe is answered once the
		// abandoned call is done, four seconds later.
		free := time.Now().Add(5 * time.Second)
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(ctx context.Context, c *fake) error {
			return c.sleep(ctx, time.Until(free))
		})
		require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
		f.call = nil
		start := time.Now()
		err := call(within(t, 2*time.Second), p, stdio, "s")
		require.ErrorIs(t, err, context.DeadlineExceeded, "the probe is cancelled with its caller")
		require.True(t, mcppool.SafeToRetry(err))
		require.Equal(t, 2*time.Second, time.Since(start))
		require.NoError(t, call(within(t, 10*time.Second), p, stdio, "s"))
		require.Equal(t, 4*time.Second, time.Since(start))
		require.Len(t, f.all(), 1)
	})
}

func TestProbeNeverRunsWhileACallIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(_ context.Context, c *fake) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.running > 0 {
				t.Error("a call is in flight")
			}
			return nil
		})
		require.Error(t, call(within(t, time.Second), p, stdio, "s"))
		slow := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, <-slow)
	})
}

func TestCustomClientWithoutAProbeIsAskedForItsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		f := &fakes{call: slowCalls(time.Minute), list: func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
			lists++
			return nil, errors.New("method not found") // an error answer is an answer
		}}
		p := newPool(t, f, nil)
		srv := stdio
		srv.Policy.AfterAbandon = mcppool.AbandonProbe
		require.Error(t, call(within(t, time.Second), p, srv, "s"))
		f.call = nil
		require.NoError(t, call(t.Context(), p, srv, "s"))
		require.Equal(t, 1, lists)
		require.Len(t, f.all(), 1)
	})
}

func TestServerCanDiscardWhereThePoolProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(context.Context, *fake) error { return nil })
		srv := stdio
		srv.Policy.AfterAbandon = mcppool.AbandonDiscard
		require.Error(t, call(within(t, time.Second), p, srv, "s"))
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestCloseDuringAProbeWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(ctx context.Context, c *fake) error { return c.sleep(ctx, time.Hour) })
		require.Error(t, call(within(t, time.Second), p, stdio, "s"))
		c := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		p.CloseServer(stdio)
		require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
		require.Len(t, f.all(), 1)
	})
}

func TestHealthIntervalFindsWedgedIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wedged atomic.Bool
		f := &fakes{}
		var probes atomic.Int32
		p := probing(t, f, mcppool.Options{HealthInterval: 10 * time.Second, ProbeTimeout: time.Second, IdleTimeout: time.Hour},
			func(ctx context.Context, c *fake) error {
				probes.Add(1)
				if wedged.Load() {
					return c.sleep(ctx, time.Hour)
				}
				return nil
			})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(35 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 3, probes.Load())
		require.Equal(t, []int{0}, f.closed())
		wedged.Store(true)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
		require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonWedged])
	})
}

func TestHealthCheckDoesNotMakeASessionLookUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := probing(t, f, mcppool.Options{HealthInterval: 10 * time.Second, IdleTimeout: time.Minute},
			func(ctx context.Context, c *fake) error { return c.sleep(ctx, 2*time.Second) })
		require.NoError(t, call(t.Context(), p, stdio, "first"))
		time.Sleep(11 * time.Second) // during the check of the first
		require.NoError(t, call(t.Context(), p, stdio, "second"))
		time.Sleep(49*time.Second + 5*time.Second)
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed(), "the first has expired, the second hasn't")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{1, 1}, f.closed())
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestProbeThatPanicsIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(context.Context, *fake) error { panic("oh") })
		require.Error(t, call(within(t, time.Second), p, stdio, "s"))
		f.call = nil
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 2)
	})
}

func TestIdleSessionIsNotLookedAtUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := probing(t, f, mcppool.Options{IdleTimeout: -1}, func(context.Context, *fake) error {
			t.Error("a probe")
			return nil
		})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(100 * time.Hour)
	})
}

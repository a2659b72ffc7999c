package mcppool_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestSessionIsReplacedAfterItsCallsAreUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Recycle: mcppool.Recycle{MaxCalls: 3}})
		for range 7 {
			require.NoError(t, call(t.Context(), p, stdio, "s"))
		}
		synctest.Wait()
		require.Equal(t, []int{1, 1, 0}, f.closed())
		require.EqualValues(t, 2, p.Stats().Closed[mcppool.ReasonRecycled])
	})
}

func TestSessionIsReplacedAfterItsLifetimeButNeverDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(2 * time.Hour)}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: -1, Recycle: mcppool.Recycle{MaxLifetime: time.Hour}})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed(), "when the call had ended")
		f.call = nil
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(54*time.Minute - 1) // a tenth less at most
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 2)
		time.Sleep(6 * time.Minute)
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 3, "it became too old while idle")
	})
}

func TestSharedServersNextSessionIsConnectedBeforeItsLastGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, &mcppool.Options{Recycle: mcppool.Recycle{MaxCalls: 2}})
		srv := shared(true, 1)
		for range 2 {
			require.NoError(t, call(t.Context(), p, srv, ""))
		}
		start := time.Now()
		require.NoError(t, call(t.Context(), p, srv, ""), "the old one serves until the new one is up")
		require.Zero(t, time.Since(start))
		require.Equal(t, []int{0}, f.closed())
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, srv, ""))
		require.Equal(t, time.Second, time.Since(start), "nobody waited for a connect")
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed())
		require.Zero(t, p.Stats().Spares)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

// A session that had waited at a limit was as old as its wait, and replaced after its
// first call.
func TestLifetimeBeginsWhenTheWaitAtALimitHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{closeTime: time.Hour}
		p := newPool(t, f, &mcppool.Options{
			Limits: mcppool.Limits{MaxProcesses: 1}, Recycle: mcppool.Recycle{MaxLifetime: time.Hour},
		})
		require.NoError(t, call(t.Context(), p, stdio, "first"))
		require.NoError(t, call(t.Context(), p, stdio, "second"), "an hour later")
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed())
	})
}

// sized is a connection whose process tree uses as much memory as is said.
type sized struct {
	*fake
	bytes *atomic.Int64
}

func (s sized) RSS() (bytes int64, ok bool) { return s.bytes.Load(), true }

func TestSessionThatUsesTooMuchMemoryIsReplacedWhenItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(30 * time.Second)}
		var uses atomic.Int64
		p, err := mcppool.New(&mcppool.Options{
			IdleTimeout: -1,
			Recycle:     mcppool.Recycle{MaxRSS: 1 << 30},
			Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
				c, err := f.dial(ctx, srv)
				if err != nil {
					return nil, err
				}
				return sized{c.(*fake), &uses}, nil
			},
		})
		require.NoError(t, err)
		defer p.Close()
		start := time.Now() // memory is looked at ten seconds after the first call has begun
		uses.Store(1 << 30)
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(time.Minute + time.Second)
		require.Equal(t, []int{0}, f.closed(), "it may use that much")

		busy := make(chan error, 1)
		go func() { busy <- call(t.Context(), p, stdio, "s") }()
		uses.Store(1<<30 + 1)
		time.Sleep(29 * time.Second)
		for i := range p.Sessions() {
			require.True(t, i.Kept, "a call is under way")
		}
		require.NoError(t, <-busy)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed(), "right after it")

		uses.Store(0)
		f.call = nil
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		uses.Store(1<<30 + 1)
		time.Sleep(10*time.Second - time.Since(start)%(10*time.Second) - 1)
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed(), "it is looked at every ten seconds")
		time.Sleep(1)
		synctest.Wait()
		require.Equal(t, []int{1, 1}, f.closed(), "it was idle")
		require.EqualValues(t, 2, p.Stats().Closed[mcppool.ReasonRecycled])
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

package mcppool_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

type ctxKey struct{}

func TestASessionKeepsNothingOfTheCtxThatBeganIt(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	var gone atomic.Bool
	func() {
		big := new([1 << 20]byte)
		runtime.AddCleanup(big, func(struct{}) { gone.Store(true) }, struct{}{})
		require.NoError(t, call(context.WithValue(t.Context(), ctxKey{}, big), p, stdio, "s"))
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return gone.Load()
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, p.Stats().Kept)
}

func TestTheCtxThatBeginsAConnectLendsItsValuesAndNeverItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		var value any
		p, err := mcppool.New(&mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
			value = ctx.Value(ctxKey{})
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return f.dial(ctx, srv)
		}})
		require.NoError(t, err)
		defer p.Close()
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), ctxKey{}, "mine"), time.Second/2)
		defer cancel()
		second := after(func() error { time.Sleep(time.Second / 4); return call(t.Context(), p, stdio, "s") })
		require.ErrorIs(t, call(ctx, p, stdio, "s"), context.DeadlineExceeded)
		require.NoError(t, <-second, "who waits for the same connect isn't cut short")
		require.Equal(t, "mine", value)
		require.Len(t, f.all(), 1)
	})
}

// What ends a call when several things do at one moment: an answer wins over a close,
// that over the end of the ctx, and that over the loss of the connection.
func TestOfSeveralEndsOfACallTheOneThatSaysMostCounts(t *testing.T) {
	answer := &mcppool.RPCError{Code: 7}
	for name, tc := range map[string]struct {
		closes, late, dies bool
		err                error // the client's
		want               error
	}{
		"answer":    {true, true, true, answer, answer},
		"close":     {true, true, true, errors.New("EOF"), mcppool.ErrServerClosed},
		"late":      {false, true, true, errors.New("EOF"), context.DeadlineExceeded},
		"loss":      {false, false, true, errors.New("EOF"), mcppool.ErrSessionLost},
		"odd alone": {false, false, false, mcp.ErrParseError, mcp.ErrParseError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *mcppool.Pool
				f := &fakes{call: func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if tc.late {
						<-ctx.Done()
					}
					if tc.dies {
						c.die()
					}
					if tc.closes {
						p.CloseServer(stdio)
					}
					return nil, tc.err
				}}
				p = newPool(t, f, nil)
				err := call(within(t, time.Second), p, stdio, "s")
				require.ErrorIs(t, err, tc.want)
				require.False(t, mcppool.SafeToRetry(err))
			})
		})
	}
}

func TestALeaseThatIsReleasedIsNeverTakenForOneThatWasDropped(t *testing.T) {
	var leaked atomic.Int64
	p := newPool(t, &fakes{}, &mcppool.Options{Trace: &mcppool.Trace{
		SessionReleased: func(_ context.Context, i mcppool.SessionReleasedInfo) {
			if i.Reason == mcppool.ReasonLeaked {
				leaked.Add(1)
			}
		},
	}})
	stop := make(chan struct{})
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 2000 {
		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		s.Release()
	}
	close(stop)
	<-collected
	require.Zero(t, leaked.Load())
	require.EqualValues(t, 1, p.Stats().Connects)
}

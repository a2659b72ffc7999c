package mcppool_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/poolstate"
)

func TestCloseServerDuringAConnectKeepsNothingOfIt(t *testing.T) {
	for name, stubborn := range map[string]bool{"that stops": false, "that completes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{connectTime: time.Second, stubborn: stubborn}
				p := newPool(t, f, nil)
				for _, scope := range []string{"s", ""} {
					c := after(func() error { return call(t.Context(), p, stdio, scope) })
					synctest.Wait()
					start := time.Now()
					p.CloseServer(stdio)
					err := <-c
					require.Zero(t, time.Since(start))
					require.ErrorIs(t, err, mcppool.ErrServerClosed)
					require.False(t, mcppool.SafeToRetry(err))
				}
				time.Sleep(time.Second)
				synctest.Wait()
				require.Zero(t, mcppool.Remembered(p))
				for _, n := range f.closed() {
					require.Equal(t, 1, n)
				}
			})
		})
	}
}

func TestCloseServerReleasesACallWithoutDeadlineAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour), closeTime: 5 * time.Second}
		p := newPool(t, f, nil)
		running := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		waiting := after(func() error { return call(t.Context(), p, stdio, "s") })
		oneShot := after(func() error { return call(t.Context(), p, stdio, "") })
		synctest.Wait()
		start := time.Now()
		p.CloseServer(stdio)
		for _, c := range []<-chan error{running, waiting, oneShot} {
			require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
		}
		require.Zero(t, time.Since(start))
		require.Len(t, f.all(), 2, "no reconnect")
	})
}

func TestCheckThatSaysNoAfterTheConnectClosesIt(t *testing.T) {
	for name, check := range map[string]func() bool{
		"no":     func() bool { return false },
		"panics": func() bool { panic("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakes{}
			p := newPool(t, f, nil)
			_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Scope: "s", Check: check})
			require.ErrorIs(t, err, mcppool.ErrServerClosed)
			require.NotContains(t, err.Error(), "secret")
			if name == "panics" {
				require.ErrorContains(t, err, "Check panicked")
			}
			require.Zero(t, p.Stats().Kept)
			require.NoError(t, p.Shutdown(t.Context()))
			require.Equal(t, []int{1}, f.closed())
			require.Zero(t, f.all()[0].served())
		})
	}
}

func TestCloseThatTiesWithTheCallLockWins(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Scope: "s", Check: func() bool {
		p.CloseServer(stdio) // after the connect, when the call lock is free
		return true
	}})
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
	require.Equal(t, 1, f.dialed(), "no reconnect")
}

func TestCheckIsAskedAgainBeforeEachSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		slow := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		var edited atomic.Bool
		waiting := after(func() error {
			_, err := p.CallTool(t.Context(), stdio, mcppool.Call{
				Tool: "t", Scope: "s", Check: func() bool { return !edited.Load() },
			})
			return err
		})
		synctest.Wait()
		edited.Store(true)
		require.NoError(t, <-slow)
		require.ErrorIs(t, <-waiting, mcppool.ErrServerClosed)
		synctest.Wait()
		require.Equal(t, 1, f.all()[0].served())
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestCloseServerIsExactAndCloseCommandIsNot(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	one, two, other := stdio, stdio, mcppool.Server{Command: "server", Args: []string{"--other"}}
	one.Env = map[string]string{"A": "1"}
	two.Env = map[string]string{"A": "2"}
	for _, srv := range []mcppool.Server{one, two, other} {
		require.NoError(t, call(t.Context(), p, srv, "s"))
	}
	kept := func() (n int) { return p.Stats().Kept }
	p.CloseServer(stdio)
	require.Equal(t, 3, kept(), "no session of just this config")
	p.CloseServer(one)
	require.Equal(t, 2, kept())
	require.NoError(t, call(t.Context(), p, two, "s"))
	require.Len(t, f.all(), 3, "two's session is as it was")
	require.NoError(t, call(t.Context(), p, one, "s"))
	p.CloseCommand(stdio)
	require.Equal(t, 1, kept())
}

func TestNothingOfAClosedConfigurationIsRememberedOrSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "hunter2"
		var log bytes.Buffer
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, &mcppool.Options{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		srv := mcppool.Server{
			Command: "/opt/bin/server", Args: []string{"--token", secret}, Env: map[string]string{"TOKEN": secret},
			Dir: "/" + secret,
		}
		for range 3 {
			p.CloseServer(srv)
			p.CloseCommand(srv)
		}
		require.Zero(t, mcppool.Remembered(p), "without a connect there is nothing to remember")
		c := after(func() error { return call(t.Context(), p, srv, "s") })
		synctest.Wait()
		p.CloseServer(srv)
		err := <-c
		require.ErrorIs(t, err, mcppool.ErrServerClosed)
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
		require.NoError(t, call(t.Context(), p, srv, "s"))
		f.all()[0].die()
		require.NoError(t, call(t.Context(), p, srv, "s"))
		for s := range p.Sessions() {
			require.NotContains(t, fmt.Sprintf("%+v", s), secret)
		}
		require.NoError(t, p.Close())
		require.Contains(t, log.String(), srv.String())
		require.NotContains(t, log.String()+err.Error()+srv.String(), secret)
	})
}

func TestCloseScopeClosesOneConversationOnAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		other := mcppool.Server{Command: "other"}
		require.NoError(t, call(t.Context(), p, other, "gone"))
		running := after(func() error { return call(t.Context(), p, stdio, "gone") })
		stays := after(func() error { return call(t.Context(), p, stdio, "stays") })
		oneShot := after(func() error { return call(t.Context(), p, stdio, "") })
		synctest.Wait()
		p.CloseScope("gone")
		p.CloseScope("")
		require.ErrorIs(t, <-running, mcppool.ErrServerClosed)
		require.NoError(t, <-stays)
		require.NoError(t, <-oneShot)
		synctest.Wait()
		require.Equal(t, 1, p.Stats().Kept)
		require.EqualValues(t, 2, p.Stats().Closed[mcppool.ReasonScopeClosed])
	})
}

func TestCloseFromManyGoroutinesWhileEverythingHappens(t *testing.T) {
	for name, closing := range map[string]func(p *mcppool.Pool){
		"Close":       func(p *mcppool.Pool) { p.Close() },
		"CloseServer": func(p *mcppool.Pool) { p.CloseServer(stdio) },
		"Shutdown": func(p *mcppool.Pool) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			p.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					f := &fakes{connectTime: 3 * time.Millisecond, call: slowCalls(2 * time.Millisecond)}
					p := newPool(t, f, nil)
					var wg sync.WaitGroup
					for i := range 40 {
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(9))*time.Millisecond)
							defer cancel()
							_ = call(ctx, p, stdio, fmt.Sprint(i%7))
						})
					}
					time.Sleep(time.Duration(rand.IntN(6)) * time.Millisecond)
					for range 20 {
						wg.Go(func() { closing(p) })
					}
					wg.Wait()
				})
			}
		})
	}
}

func TestRetireServerLetsBusySessionsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "idle"))
		busy := after(func() error { return call(t.Context(), p, stdio, "busy") })
		synctest.Wait()
		waiting := after(func() error { return call(t.Context(), p, stdio, "busy") })
		synctest.Wait()
		p.RetireServer(stdio)
		synctest.Wait()
		require.Equal(t, []int{1, 0, 0}, f.closed(), "the one that waited has moved on to a new session")
		require.NoError(t, <-busy)
		require.NoError(t, <-waiting)
		synctest.Wait()
		require.Equal(t, []int{1, 1, 0}, f.closed())
	})
}

func TestRetireServerDuringAConnectGivesItsWaitersANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Second}
		p := newPool(t, f, nil)
		c := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		p.RetireServer(stdio)
		require.NoError(t, <-c)
		require.Equal(t, 2, f.dialed(), "the retired connect is not used for a new call")
	})
}

func TestCloseIdleSparesWhatWasUsedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "old"))
		time.Sleep(time.Minute)
		require.NoError(t, call(t.Context(), p, stdio, "new"))
		p.CloseIdle(time.Minute)
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed())
		p.CloseIdle(0)
		synctest.Wait()
		require.Equal(t, []int{1, 1}, f.closed())
	})
}

func TestShutdownLetsCallsFinishAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(2 * time.Second)}
		p := newPool(t, f, nil)
		start := time.Now()
		running := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		queued := after(func() error { return call(t.Context(), p, stdio, "s") })
		time.Sleep(time.Second)
		done := after(func() error { return p.Shutdown(t.Context()) })
		require.ErrorIs(t, <-queued, mcppool.ErrClosed)
		require.Equal(t, time.Second, time.Since(start))
		err := call(t.Context(), p, stdio, "s")
		require.ErrorIs(t, err, mcppool.ErrClosed)
		require.True(t, mcppool.SafeToRetry(err))
		require.NoError(t, <-running)
		require.NoError(t, <-done)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestShutdownDoesNotWaitForConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: time.Hour}
		p := newPool(t, f, nil)
		kept := after(func() error { return call(t.Context(), p, stdio, "s") })
		oneShot := after(func() error { return call(t.Context(), p, stdio, "") })
		synctest.Wait()
		start := time.Now()
		require.NoError(t, p.Shutdown(t.Context()))
		for _, c := range []<-chan error{kept, oneShot} {
			err := <-c
			require.ErrorIs(t, err, mcppool.ErrClosed)
			require.True(t, mcppool.SafeToRetry(err))
		}
		require.Zero(t, time.Since(start))
	})
}

func TestShutdownWhoseContextEndsInterruptsButStillClosesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour), closeTime: time.Second}
		p := newPool(t, f, nil)
		running := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		start := time.Now()
		require.ErrorIs(t, p.Shutdown(within(t, 3*time.Second)), context.DeadlineExceeded)
		require.Equal(t, 4*time.Second, time.Since(start), "it waited for the close")
		err := <-running
		require.ErrorIs(t, err, mcppool.ErrClosed)
		require.False(t, mcppool.SafeToRetry(err), "it was sent")
	})
}

func TestShutdownWithAContextThatIsOverAndNothingToDoSucceeds(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.Shutdown(ctx))
}

func TestManySessionsCloseAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{closeTime: time.Second}
		p := newPool(t, f, &mcppool.Options{MaxSessions: -1})
		for i := range 100 {
			require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
		}
		start := time.Now()
		require.NoError(t, p.Close())
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestCloseMayBeCalledFromWithinDo(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	require.NoError(t, p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
		return p.Close()
	}))
}

func TestAnswerThatTiesWithACloseIsDelivered(t *testing.T) {
	var p *mcppool.Pool
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p.CloseServer(stdio)
		return mcp.NewToolResultText("done"), nil
	}}
	p = newPool(t, f, nil)
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Zero(t, p.Stats().Kept)
}

// The state and the pool name the same reasons in the same words.
func TestReasonsOfTheStateArePublic(t *testing.T) {
	for public, own := range map[mcppool.CloseReason]poolstate.Reason{
		mcppool.ReasonOneShot:      poolstate.OneShot,
		mcppool.ReasonIdle:         poolstate.Idle,
		mcppool.ReasonLRU:          poolstate.LRU,
		mcppool.ReasonCrashed:      poolstate.Crashed,
		mcppool.ReasonServerClosed: poolstate.ServerClosed,
		mcppool.ReasonByID:         poolstate.ByID,
		mcppool.ReasonRetired:      poolstate.Retired,
		mcppool.ReasonShutdown:     poolstate.Shutdown,
		mcppool.ReasonEvicted:      poolstate.Evicted,
		mcppool.ReasonRecycled:     poolstate.Recycled,
		mcppool.ReasonStartFailed:  poolstate.StartFailed,
		mcppool.ReasonAbandoned:    poolstate.Abandoned,
	} {
		require.Equal(t, string(public), string(own))
	}
}

package mcppool_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// A func of the caller's that ends its goroutine, as a test's FailNow does, is a failure
// like any other: nobody waits for ever, and nothing is left.
func TestFuncsThatEndTheirGoroutineLeaveNothingBehind(t *testing.T) {
	for what, set := range map[string]func(o *mcppool.Options, srv *mcppool.Server){
		"Dial": func(o *mcppool.Options, _ *mcppool.Server) {
			o.Dial = func(context.Context, mcppool.Server) (mcppool.Client, error) { runtime.Goexit(); return nil, nil }
		},
		"AfterConnect": func(o *mcppool.Options, _ *mcppool.Server) {
			o.AfterConnect = func(context.Context, *mcppool.Session) error { runtime.Goexit(); return nil }
		},
		"ConnectBegin": func(o *mcppool.Options, _ *mcppool.Server) {
			o.Trace.ConnectBegin = func(context.Context, mcppool.ConnectBeginInfo) { runtime.Goexit() }
		},
		"ConnectEnd": func(o *mcppool.Options, _ *mcppool.Server) {
			o.Trace.ConnectEnd = func(context.Context, mcppool.ConnectEndInfo) { runtime.Goexit() }
		},
		"SessionOpened": func(o *mcppool.Options, _ *mcppool.Server) {
			o.Trace.SessionOpened = func(context.Context, mcppool.SessionOpenedInfo) { runtime.Goexit() }
		},
		"SessionClosed": func(o *mcppool.Options, _ *mcppool.Server) {
			o.Trace.SessionClosed = func(context.Context, mcppool.SessionClosedInfo) { runtime.Goexit() }
		},
		"BeforeClose": func(_ *mcppool.Options, srv *mcppool.Server) {
			srv.Policy.BeforeClose = func(context.Context, *mcppool.Session) error { runtime.Goexit(); return nil }
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{}
				o := mcppool.Options{Trace: &mcppool.Trace{}}
				srv := stdio
				set(&o, &srv)
				p := newPool(t, f, &o)
				err := call(within(t, time.Hour), p, srv, "s")
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				switch what {
				case "Dial", "AfterConnect", "ConnectBegin":
					var failed *mcppool.StartError
					require.ErrorAs(t, err, &failed)
					require.ErrorContains(t, err, "Goexit")
				default:
					require.NoError(t, err)
				}
				require.NoError(t, p.Close())
				require.NoError(t, mcppool.CheckInvariants(p))
			})
		})
	}
}

func TestAProbeThatEndsItsGoroutineIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := probing(t, f, mcppool.Options{}, func(context.Context, *fake) error { runtime.Goexit(); return nil })
		require.ErrorIs(t, call(within(t, time.Second), p, stdio, "s"), context.DeadlineExceeded)
		require.NoError(t, call(within(t, time.Hour), p, stdio, "s"))
		require.Len(t, f.all(), 2)
	})
}

func TestARequestThatOutlivesAfterConnectOverlapsNobodysCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)} // whose pool's end finds calls that overlapped
		p := newPool(t, f, &mcppool.Options{AfterConnect: func(_ context.Context, s *mcppool.Session) error {
			go func() { _, _ = s.CallTool(context.Background(), mcppool.Call{Tool: "late"}) }()
			synctest.Wait()
			return nil
		}})
		begun := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour)}
		p := newPool(t, f, &mcppool.Options{ConnectTimeout: time.Second, AfterConnect: func(_ context.Context, s *mcppool.Session) error {
			go func() { _, _ = s.CallTool(context.Background(), mcppool.Call{Tool: "late"}) }()
			synctest.Wait()
			return nil
		}})
		require.ErrorContains(t, call(t.Context(), p, stdio, "s"), "still under way")
	})
}

func TestACallThatIsGivenUpInAfterConnectIsProbed(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakes{call: slowCalls(time.Minute)}
			probes := 0
			o := mcppool.Options{AfterConnect: func(ctx context.Context, s *mcppool.Session) error {
				if probes > 0 {
					return nil
				}
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := s.CallTool(ctx, mcppool.Call{Tool: "warm up"})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return nil
			}}
			p := probing(t, f, o, func(context.Context, *fake) error {
				if probes++; answers {
					return nil
				}
				return errors.New("no answer")
			})
			require.NoError(t, call(within(t, time.Hour), p, stdio, "s"))
			require.Equal(t, 1, probes)
			want := 2
			if answers {
				want = 1
			}
			require.Len(t, f.all(), want)
		})
	}
}

// failsToClose is a client whose processes can't be ended.
type failsToClose struct{ *fake }

func (c failsToClose) Close() error { return errors.Join(errors.New("it lives"), c.fake.Close()) }

func TestASessionWhoseAfterConnectFailsIsClosedAsAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{closeTime: time.Minute}
		saved := false
		p := newPool(t, f, &mcppool.Options{
			Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
				c, err := f.dial(ctx, srv)
				return failsToClose{c.(*fake)}, err
			},
			AfterConnect: func(context.Context, *mcppool.Session) error { return errors.New("wrong password") },
		})
		srv := stdio
		srv.Policy.BeforeClose = func(context.Context, *mcppool.Session) error { saved = true; return nil }
		begun := time.Now()
		require.ErrorContains(t, call(t.Context(), p, srv, "s"), "wrong password")
		require.Zero(t, time.Since(begun), "nobody waits for the close")
		require.Equal(t, 1, p.Stats().Closing)
		time.Sleep(time.Hour)
		require.Zero(t, p.Stats().Open)
		require.False(t, saved, "it never opened")
	})
}

func TestACauseOfALateConnectIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{}, &mcppool.Options{ConnectTimeout: time.Second, AfterConnect: func(ctx context.Context, _ *mcppool.Session) error {
			<-ctx.Done()
			return errors.New("the password is wrong")
		}})
		err := call(t.Context(), p, stdio, "s")
		require.ErrorContains(t, err, "no connection within 1s: the password is wrong")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestBeforeCloseIsThatOfTheCallThatTookTheSessionOver(t *testing.T) {
	for what, begin := range map[string]func(p *mcppool.Pool, srv mcppool.Server) error{
		"a listing": func(p *mcppool.Pool, srv mcppool.Server) error {
			_, err := p.ListTools(context.Background(), srv, mcppool.Borrow{})
			return err
		},
		"a spare": func(p *mcppool.Pool, srv mcppool.Server) error { return p.Prewarm(context.Background(), srv, 1) },
	} {
		for _, early := range []bool{true, false} {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fakes{connectTime: time.Second}
					p := newPool(t, f, nil)
					begun := after(func() error { return begin(p, stdio) })
					if !early {
						require.NoError(t, <-begun)
					}
					synctest.Wait()
					srv := stdio
					var saved []string
					srv.Policy.BeforeClose = func(_ context.Context, s *mcppool.Session) error {
						require.NoError(t, s.Err())
						saved = append(saved, s.ID())
						return nil
					}
					var served mcppool.Served
					_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "t", Scope: "s", Served: &served})
					require.NoError(t, err)
					require.Equal(t, 1, f.dialed())
					require.NoError(t, p.Close())
					require.Equal(t, []string{served.SessionID}, saved)
				})
			})
		}
	}
}

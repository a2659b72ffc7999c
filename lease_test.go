package mcppool_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestAcquireHoldsTheSessionUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		start := time.Now()
		s, err := p.Acquire(within(t, time.Minute), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		require.NotEmpty(t, s.ID())
		waits := after(func() error { return call(t.Context(), p, stdio, "s") })
		time.Sleep(time.Hour) // the ctx of Acquire is long over
		_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "mine"})
		require.NoError(t, err)
		s.Release()
		s.Release() // harmless
		s.Discard()
		require.NoError(t, <-waits)
		require.Equal(t, time.Hour, time.Since(start))
		require.Equal(t, []string{"mine", "t"}, f.all()[0].calls)
		require.Equal(t, 1, p.Stats().Kept)
		require.EqualValues(t, 2, p.Stats().Calls)
		_, err = s.ListTools(t.Context())
		require.ErrorContains(t, err, "given back")
	})
}

func TestDiscardedSessionServesNobodyElse(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	s.Discard()
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 2)
}

func TestLeaseLearnsThatItsSessionWasClosed(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	defer s.Release()
	p.CloseScope("s")
	<-s.Done()
	_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "t"})
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
}

func TestLeaseLearnsWhyItsSessionCannotBeUsedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		acquire := func() *mcppool.Session {
			s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
			require.NoError(t, err)
			require.NoError(t, s.Err())
			return s
		}
		s := acquire()
		done := s.Done()
		synctest.Wait()
		require.NotPanics(t, func() {
			select {
			case <-done:
				panic("it is over")
			default:
			}
		})
		f.all()[0].die()
		<-done
		require.ErrorIs(t, s.Err(), mcppool.ErrSessionLost)
		s.Release()
		<-s.Done()

		s = acquire()
		p.CloseServer(stdio)
		<-s.Done()
		require.ErrorIs(t, s.Err(), mcppool.ErrServerClosed)
		s.Release()
		synctest.Wait()
		<-s.Done()

		s = acquire()
		done = s.Done()
		s.Release()
		require.NoError(t, p.Close())
		<-done // and no goroutine of it is left
	})
}

func TestDoEndsTheCtxOfItsFuncWhenTheConnectionIsLost(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	err := p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, _ *mcppool.Session) error {
		f.all()[0].die()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, mcppool.ErrSessionLost)
}

func TestACallThatOutlivesItsBorrowOverlapsNobodysCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, nil)
		var late <-chan error
		begun := time.Now()
		require.NoError(t, p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(_ context.Context, s *mcppool.Session) error {
			late = after(func() error { _, err := s.CallTool(t.Context(), mcppool.Call{Tool: "late"}); return err })
			synctest.Wait()
			return nil
		}))
		require.Zero(t, time.Since(begun))
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, <-late)
		require.Equal(t, 2*time.Minute, time.Since(begun))
		require.False(t, f.all()[0].overlapped())
	})
}

func TestDiscardEndsTheCallsThatAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Hour)}
		p := newPool(t, f, nil)
		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		late := after(func() error { _, err := s.CallTool(t.Context(), mcppool.Call{Tool: "late"}); return err })
		synctest.Wait()
		begun := time.Now()
		s.Discard()
		require.Error(t, <-late)
		require.Zero(t, time.Since(begun))
	})
}

func TestCallOfAnotherScopeWithinABorrowIsRefused(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	defer s.Release()
	_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "t", Scope: "other"})
	var bad *mcppool.ConfigError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Call.Scope", bad.Field)
	for _, scope := range []string{"", "s"} {
		_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "t", Scope: scope})
		require.NoError(t, err)
	}
	require.Equal(t, 2, f.all()[0].served())
}

func TestCheckOfABorrowIsAsked(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	no := mcppool.Borrow{Scope: "s", Check: func() bool { return false }}
	_, err := p.Acquire(t.Context(), stdio, no)
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
	_, err = p.ListTools(t.Context(), stdio, no)
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
	require.ErrorIs(t, p.Do(t.Context(), stdio, no, nil), mcppool.ErrServerClosed)
}

func TestLeaseIsOfOneSessionAndEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, nil)
		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		_, err = s.CallTool(within(t, time.Second), mcppool.Call{Tool: "t"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "t"})
		require.ErrorIs(t, err, mcppool.ErrSessionLost, "its state is in doubt")
		require.True(t, mcppool.SafeToRetry(err))
		s.Release()
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestLeaseThatIsDroppedIsReportedAndItsSessionReclaimed(t *testing.T) {
	var book logbook
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{Logger: book.logger(slog.LevelError)})
	_, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		runtime.GC()
		return slices.Contains(book.take(), `level=ERROR msg="a session was acquired and never released"`)
	}, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return p.Stats().Closed[mcppool.ReasonLeaked] == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 2)
}

func TestCheckThatSaysNoWithinABorrowClosesTheSession(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	err := p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, l *mcppool.Session) error {
		_, err := l.CallTool(ctx, mcppool.Call{Tool: "t", Check: func() bool { return false }})
		return err
	})
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
	require.Zero(t, f.all()[0].served())
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Equal(t, 2, f.dialed(), "the next caller has a new session")
}

// isOver reports whether a session can't be used any more, as its holder sees it.
func isOver(s *mcppool.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

func TestDoneAndErrTellTheHolderWhateverEndsHisBorrow(t *testing.T) {
	for what, end := range map[string]struct {
		by   func(p *mcppool.Pool, f *fakes, s *mcppool.Session)
		want error
	}{
		"released":  {func(_ *mcppool.Pool, _ *fakes, s *mcppool.Session) { s.Release() }, mcppool.ErrReleased},
		"discarded": {func(_ *mcppool.Pool, _ *fakes, s *mcppool.Session) { s.Discard() }, mcppool.ErrReleased},
		"retired and released": {func(p *mcppool.Pool, _ *fakes, s *mcppool.Session) {
			p.RetireServer(stdio)
			s.Release()
		}, mcppool.ErrReleased},
		"closed": {func(p *mcppool.Pool, _ *fakes, s *mcppool.Session) { p.CloseServer(stdio) }, mcppool.ErrServerClosed},
		"pool":   {func(p *mcppool.Pool, _ *fakes, s *mcppool.Session) { _ = p.Close() }, mcppool.ErrClosed},
		"lost":   {func(_ *mcppool.Pool, f *fakes, s *mcppool.Session) { f.all()[0].die() }, mcppool.ErrSessionLost},
		"a check": {func(_ *mcppool.Pool, _ *fakes, s *mcppool.Session) {
			_, _ = s.CallTool(context.Background(), mcppool.Call{Tool: "t", Check: func() bool { return false }})
		}, mcppool.ErrServerClosed},
		"a timeout": {func(_ *mcppool.Pool, _ *fakes, s *mcppool.Session) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_, _ = s.CallTool(ctx, mcppool.Call{Tool: "t"})
		}, mcppool.ErrSessionLost},
	} {
		for _, watched := range []bool{true, false} {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fakes{call: slowCalls(time.Second)}
					p := newPool(t, f, nil)
					s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
					require.NoError(t, err)
					defer s.Release()
					if watched {
						require.False(t, isOver(s))
					}
					require.NoError(t, s.Err())
					end.by(p, f, s)
					if watched {
						synctest.Wait()
					}
					require.True(t, isOver(s))
					require.ErrorIs(t, s.Err(), end.want)
					_, err = s.CallTool(t.Context(), mcppool.Call{Tool: "t"})
					require.ErrorIs(t, err, end.want)
				})
			})
		}
	}
}

func TestReleaseInterruptsNoCallThoughAnotherHasCostTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		f.listCtx = func(ctx context.Context) error {
			time.Sleep(time.Second)
			if f.all()[0].closed() > 0 {
				return errors.New("it was interrupted")
			}
			return ctx.Err()
		}
		p := newPool(t, f, nil)
		s, err := p.Acquire(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		runs := after(func() error {
			_, err := s.ListTools(context.Background())
			return err
		})
		synctest.Wait()
		_, err = s.CallTool(within(t, time.Millisecond), mcppool.Call{Tool: "given up"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.Release()
		require.NoError(t, <-runs)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
	})
}

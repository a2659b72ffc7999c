package mcppool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// logIn is an AfterConnect that makes a call.
func logIn(ctx context.Context, s *mcppool.Session) error {
	_, err := s.CallTool(ctx, mcppool.Call{Tool: "log in"})
	return err
}

func TestAfterConnectComesBeforeEveryCallOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{AfterConnect: logIn})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
		require.NoError(t, call(t.Context(), p, stdio, "other"))
		require.Equal(t, []string{"log in", "t", "t"}, f.all()[0].calls)
		require.Equal(t, []string{"log in", "t"}, f.all()[1].calls)
		require.NoError(t, mcppool.CheckInvariants(p))
	})
}

func TestSessionWhoseAfterConnectFailsNeverOpens(t *testing.T) {
	for what, hook := range map[string]func(context.Context, *mcppool.Session) error{
		"error":   func(context.Context, *mcppool.Session) error { return errors.New("wrong password") },
		"panic":   func(context.Context, *mcppool.Session) error { panic("oops") },
		"discard": func(_ context.Context, s *mcppool.Session) error { s.Discard(); return nil },
		"late":    func(ctx context.Context, _ *mcppool.Session) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{}
				p := newPool(t, f, &mcppool.Options{AfterConnect: hook, ConnectTimeout: time.Second})
				var failed *mcppool.StartError
				err := call(t.Context(), p, stdio, "s")
				require.ErrorAs(t, err, &failed)
				require.Equal(t, "connect", failed.Phase)
				require.True(t, mcppool.SafeToRetry(err))
				synctest.Wait()
				require.Equal(t, []int{1}, f.closed())
				require.EqualValues(t, 1, p.Stats().Failures)
				require.Zero(t, p.Stats().Open)
				require.NoError(t, mcppool.CheckInvariants(p))
			})
		})
	}
}

func TestSessionOfAfterConnectIsUselessAfterwards(t *testing.T) {
	var kept *mcppool.Session
	p := newPool(t, &fakes{}, &mcppool.Options{AfterConnect: func(_ context.Context, s *mcppool.Session) error {
		kept = s
		return nil
	}})
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	_, err := kept.CallTool(t.Context(), mcppool.Call{Tool: "t"})
	require.ErrorContains(t, err, "given back")
	kept.Release()
	require.NoError(t, mcppool.CheckInvariants(p))
}

func TestAfterConnectOfAServerThatDiesEndsTheConnect(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{AfterConnect: func(ctx context.Context, s *mcppool.Session) error {
		f.all()[0].die()
		<-s.Done()
		return s.Err()
	}})
	var failed *mcppool.StartError
	require.ErrorAs(t, call(t.Context(), p, stdio, "s"), &failed)
}

func TestOptionsAreShownWithTheirDefaults(t *testing.T) {
	p := newPool(t, &fakes{}, &mcppool.Options{IdleTimeout: -1, InheritEnv: []string{"A"}})
	o := p.Options()
	require.Equal(t, 32, o.MaxSessions)
	require.Equal(t, time.Duration(-1), o.IdleTimeout)
	require.Equal(t, time.Minute, o.ConnectTimeout)
	require.Equal(t, 10*time.Second, o.CloseTimeout)
	require.Equal(t, mcppool.AbandonDiscard, o.AfterAbandon)
	require.Equal(t, "mcppool", o.ClientInfo.Name)
	p.SetLimits(mcppool.Limits{MaxProcesses: 3})
	o.InheritEnv[0] = "B"
	o = p.Options()
	require.Equal(t, 3, o.Limits.MaxProcesses)
	require.Equal(t, []string{"A"}, o.InheritEnv)
}

func TestWaitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{connectTime: time.Hour, call: slowCalls(time.Second)}, &mcppool.Options{ConnectTimeout: -1})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Zero(t, p.Stats().WaitCount, "a connect is none")
		first := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, <-first)
		s := p.Stats()
		require.EqualValues(t, 1, s.WaitCount)
		require.Equal(t, time.Second, s.WaitDuration)
	})
}

func TestASpareMayBeHandedOutWhileItsAfterConnectCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{AfterConnect: logIn, Trace: &mcppool.Trace{
			CallBegin: func(context.Context, mcppool.CallBeginInfo) {},
			CallEnd:   func(context.Context, mcppool.CallEndInfo) {},
		}})
		warmed := after(func() error { return p.Prewarm(t.Context(), stdio, 1) })
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, <-warmed)
		require.Equal(t, []string{"log in", "t"}, f.all()[0].calls)
		require.Len(t, f.all(), 1)
	})
}

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

// saving is a server whose sessions are told to save before they are closed.
func saving(f func(context.Context, *mcppool.Session) error) mcppool.Server {
	return mcppool.Server{Command: "saving", Policy: mcppool.Policy{BeforeClose: f}}
}

func save(ctx context.Context, s *mcppool.Session) error {
	_, err := s.CallTool(ctx, mcppool.Call{Tool: "save"})
	return err
}

func TestBeforeCloseComesAtEveryCloseOfASessionThatCanTakeIt(t *testing.T) {
	for how, end := range map[string]func(p *mcppool.Pool){
		"close":    func(p *mcppool.Pool) { _ = p.Close() },
		"idle":     func(p *mcppool.Pool) { p.CloseIdle(0) },
		"server":   func(p *mcppool.Pool) { p.CloseServer(saving(nil)) },
		"scope":    func(p *mcppool.Pool) { p.CloseScope("s") },
		"retire":   func(p *mcppool.Pool) { p.RetireServer(saving(nil)) },
		"time":     func(*mcppool.Pool) { time.Sleep(time.Hour) },
		"shutdown": func(p *mcppool.Pool) { _ = p.Shutdown(context.Background()) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{}
				p := newPool(t, f, nil)
				require.NoError(t, call(t.Context(), p, saving(save), "s"))
				end(p)
				synctest.Wait()
				require.Equal(t, []string{"t", "save"}, f.all()[0].calls)
				require.Equal(t, []int{1}, f.closed())
				require.NoError(t, mcppool.CheckInvariants(p))
			})
		})
	}
}

func TestBeforeCloseIsLeftOutWhereItCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		called := false
		srv := saving(func(context.Context, *mcppool.Session) error { called = true; return nil })
		require.NoError(t, call(t.Context(), p, srv, "lost"))
		f.all()[0].die()
		require.NoError(t, call(t.Context(), p, srv, "lost"))

		f.call = slowCalls(time.Hour)
		busy := after(func() error { return call(t.Context(), p, srv, "busy") })
		synctest.Wait()
		begun := time.Now()
		p.CloseScope("busy")
		require.ErrorIs(t, <-busy, mcppool.ErrServerClosed)
		require.Zero(t, time.Since(begun), "a call that is interrupted doesn't wait for it")
		require.False(t, called)
	})
}

func TestBeforeCloseIsBoundedByTheGraceAndItsFailureIsReported(t *testing.T) {
	for what, hook := range map[string]func(context.Context, *mcppool.Session) error{
		"late":  func(ctx context.Context, _ *mcppool.Session) error { <-ctx.Done(); return ctx.Err() },
		"panic": func(context.Context, *mcppool.Session) error { panic("oops") },
		"error": func(context.Context, *mcppool.Session) error { return errors.New("disk full") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told error
				p := newPool(t, &fakes{}, &mcppool.Options{CloseTimeout: 10 * time.Second, CloseGrace: 2 * time.Second, Trace: &mcppool.Trace{
					SessionClosed: func(_ context.Context, i mcppool.SessionClosedInfo) { told = i.Err },
				}})
				require.NoError(t, call(t.Context(), p, saving(hook), "s"))
				begun := time.Now()
				require.NoError(t, p.Close())
				require.LessOrEqual(t, time.Since(begun), 2*time.Second)
				require.Error(t, told)
			})
		})
	}
}

func TestGraceThatIsNoPartOfTheCloseTimeoutIsRefused(t *testing.T) {
	for _, o := range []mcppool.Options{{CloseGrace: -1}, {CloseTimeout: time.Second, CloseGrace: 2 * time.Second}} {
		_, err := mcppool.New(&o)
		var bad *mcppool.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Options.CloseGrace", bad.Field)
	}
}

//go:build linux

package interop_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// A deadline in a call is kept to, the next call has a new session and is told why.
func checkDeadline(b *bench) {
	p, srv := b.pool(mcppool.Options{}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	const limit = 1500 * time.Millisecond
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	begun := time.Now()
	done := b.during(ctx, p, srv)
	require.ErrorIs(b, b.wait(done), context.DeadlineExceeded)
	require.Less(b, time.Since(begun), limit+time.Second)
	_, next := b.ask(p, srv, "A", b.get("aleph"))
	require.NotEqual(b, first.SessionID, next.SessionID)
	require.True(b, next.Fresh)
	require.Equal(b, mcppool.ReasonTimeout, next.Follows)
}

// With AbandonProbe a call that was cancelled costs nothing, once the server answers again.
func checkCancel(b *bench) {
	p, srv := b.pool(mcppool.Options{AfterAbandon: mcppool.AbandonProbe, ProbeTimeout: 30 * time.Second}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	thaw := func() {}
	if b.slow == nil {
		thaw = freeze(b, b.session(p, "A").PID)
	}
	done := b.during(ctx, p, srv)
	cancel()
	require.ErrorIs(b, b.wait(done), context.Canceled)
	thaw()
	got, next := b.ask(p, srv, "A", b.get("aleph"))
	require.Equal(b, first.SessionID, next.SessionID, "after %s", next.Follows)
	if b.put != nil {
		require.Contains(b, got, "aleph")
	}
}

// A server that is killed while nobody calls it is replaced, and the next call is told.
func checkKilledBetween(b *bench) {
	p, srv := b.pool(mcppool.Options{}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	require.NoError(b, syscall.Kill(b.session(p, "A").PID, syscall.SIGKILL))
	eventually(b, "the pool notices", func() bool { return p.Stats().Closed[mcppool.ReasonCrashed] == 1 })
	_, next := b.ask(p, srv, "A", b.get("aleph"))
	require.NotEqual(b, first.SessionID, next.SessionID)
	require.True(b, next.Fresh)
	require.Equal(b, mcppool.ReasonCrashed, next.Follows)
}

// A call whose server is killed fails at once, and isn't made again.
func checkKilledDuring(b *bench) {
	p, srv := b.pool(mcppool.Options{}), b.server()
	b.leave(p, srv, "A", "aleph")
	done := b.during(b.Context(), p, srv)
	require.NoError(b, syscall.Kill(b.session(p, "A").PID, syscall.SIGKILL))
	err := b.wait(done)
	require.ErrorIs(b, err, mcppool.ErrSessionLost)
	require.False(b, mcppool.SafeToRetry(err))
	_, next := b.ask(p, srv, "A", b.get("aleph"))
	require.True(b, next.Fresh)
}

// Large arguments arrive, or are refused; either way the pool goes on.
func checkBig(b *bench) {
	p, srv := b.pool(mcppool.Options{}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	c := b.big(strings.Repeat("0123456789abcdef", 11<<20/16))
	c.Scope = "A"
	res, err := p.CallTool(ctx, srv, c)
	_, next := b.ask(p, srv, "A", b.get("aleph"))
	switch {
	case err == nil && !res.IsError:
		b.found.big = "takes them"
	case answered(err):
		b.found.big = "refuses them"
	case errors.Is(err, mcppool.ErrSessionLost):
		b.found.big = "dies"
		b.Log(err)
		require.True(b, next.Fresh)
		return
	default:
		require.NoError(b, err)
	}
	require.Equal(b, first.SessionID, next.SessionID)
}

// A close doesn't wait for a call, nor for what that has started.
func checkBusyClose(b *bench) {
	p, srv := b.pool(mcppool.Options{}), b.server()
	b.leave(p, srv, "A", "aleph")
	done := b.during(b.Context(), p, srv)
	if b.slow != nil {
		time.Sleep(300 * time.Millisecond) // so that a tool has started what it starts
	}
	p.CloseServer(srv)
	require.ErrorIs(b, b.wait(done), mcppool.ErrServerClosed)
}

// Of a wrapper that is killed alone nothing is left, and the next call works.
func checkWrapper(b *bench) {
	b.throughNpx()
	p, srv := b.pool(mcppool.Options{}), b.server()
	first := b.leave(p, srv, "A", "aleph")
	require.NoError(b, syscall.Kill(b.session(p, "A").PID, syscall.SIGKILL))
	eventually(b, "the pool notices", func() bool { return p.Stats().Closed[mcppool.ReasonCrashed] == 1 })
	_, next := b.ask(p, srv, "A", b.get("aleph"))
	require.NotEqual(b, first.SessionID, next.SessionID)
	require.Equal(b, mcppool.ReasonCrashed, next.Follows)
}

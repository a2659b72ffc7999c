package mcppool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestGateThatRefusesKeepsTheCallFromTheServerAndTheSession(t *testing.T) {
	refusal := errors.New("not yours")
	pool, srv := realPool(t, nil), real(t, "plain")
	require.Equal(t, "[a]", say(t, pool, srv, "s", "note", map[string]any{"text": "a"}))
	var served, seen mcppool.Served
	_, err := pool.CallTool(t.Context(), srv, mcppool.Call{
		Tool: "note", Args: map[string]any{"text": "never"}, Scope: "s", Served: &served,
		Gate: func(in mcppool.Served) error { seen = in; return refusal },
	})
	require.ErrorIs(t, err, refusal)
	require.True(t, mcppool.SafeToRetry(err))
	require.Equal(t, served, seen)
	require.Equal(t, "s", seen.Scope)
	require.Equal(t, "[a b]", say(t, pool, srv, "s", "note", map[string]any{"text": "b"}))
}

func TestCallForASessionRunsInNoOther(t *testing.T) {
	f := &fakes{}
	pool, err := mcppool.New(&mcppool.Options{Dial: f.dial})
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	var served mcppool.Served
	srv := mcppool.Server{Command: "x"}
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "a", Scope: "s", Served: &served})
	require.NoError(t, err)
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "b", Scope: "s", IfSession: served.SessionID})
	require.NoError(t, err)
	pool.CloseScope("s")
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "c", Scope: "s", IfSession: served.SessionID})
	require.ErrorIs(t, err, mcppool.ErrOtherSession)
	require.True(t, mcppool.SafeToRetry(err))
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "d", Scope: "s", Served: &served})
	require.NoError(t, err)
	require.True(t, served.Fresh, "what was refused was no call")
}

func TestErrorMarkedAsNotSentIsSafeToRetry(t *testing.T) {
	require.True(t, mcppool.SafeToRetry(mcppool.MarkNotSent(context.Canceled)))
	require.False(t, mcppool.SafeToRetry(mcppool.MarkNotSent(mcppool.ErrServerClosed)))
}

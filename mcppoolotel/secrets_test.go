package mcppoolotel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// life is a pool with all that this module adds to it, of which nothing that goes
// out may have a secret in it.
type life struct {
	*bench
	telemetrytest.Life
}

func newLife(t *testing.T) *life {
	t.Helper()
	b := newBench(t, nil, mcppool.Options{MaxSessions: 1, Backoff: mcppool.Backoff{Failures: 1000}}, mcppoolotel.Options{})
	b.telemetry.Attach(b.pool)
	return &life{bench: b, Life: telemetrytest.Life{T: t, Pool: b.pool, Caller: b.tools}}
}

// requireFull closes the pool, checks what went out, and that it has some texts,
// without which the life was not a full one.
func (l *life) requireFull(texts ...string) {
	l.T.Helper()
	require.NoError(l.T, l.pool.Close())
	out := l.everything(l.T)
	telemetrytest.RequireNoSecret(l.T, out)
	for _, text := range texts {
		require.Contains(l.T, out, text)
	}
}

func TestNoSecretOfAChildGoesOut(t *testing.T) {
	l := newLife(t)
	srv := telemetrytest.Secretive(t, telemetrytest.Raw)
	srv.Protocol = mcppool.ProtocolLegacy
	require.NoError(t, l.pool.Prewarm(t.Context(), srv, 1))
	l.UseChild(srv)
	var refused *mcppool.RPCError
	_, err := l.pool.ListTools(t.Context(), srv, mcppool.Borrow{Scope: "another"})
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, l.pool.Do(t.Context(), srv, mcppool.Borrow{Scope: "another"}, func(ctx context.Context, s *mcppool.Session) error {
		_, err := s.CallTool(ctx, mcppool.Call{Tool: "missing in Do"})
		return err
	}), &refused)
	l.requireFull(
		`"error.type","Value":{"Type":"STRING","Value":"tool_error"`, `"Value":"-32601"`, `"Value":"timeout"`,
		"the session was lost (exit status 7)", "[redacted]", "mcppool.close.reason=lru:1", "mcppool.close.reason=one-shot:1",
	)
	require.Contains(t, l.one(t, "tools/call missing").Status().Description, "[redacted]")
	require.Contains(t, l.one(t, "tools/call missing in Do").Status().Description, "[redacted]")
}

func TestNoSecretOfAChildThatDoesNotStartGoesOut(t *testing.T) {
	l := newLife(t)
	missing := telemetrytest.Secretive(t, telemetrytest.Raw)
	missing.Command = "no-such-program"
	noDir := telemetrytest.Secretive(t, telemetrytest.Raw)
	noDir.Dir = "/no/such/directory"
	servers := []mcppool.Server{missing, noDir}
	for _, kind := range []string{telemetrytest.Exiting, telemetrytest.Refusing, telemetrytest.Odd} {
		servers = append(servers, telemetrytest.Secretive(t, kind))
	}
	for _, srv := range servers {
		require.Error(t, l.Call(srv, "tell", "s"))
		require.Error(t, l.pool.Prewarm(t.Context(), srv, 1))
	}
	// What is no configuration is refused with its field's name alone.
	require.Error(t, l.Call(mcppool.Server{Command: "c", Env: map[string]string{"A": telemetrytest.Mark + "\x00"}}, "tell", "s"))
	l.requireFull(
		"the server did not start", "the server did not connect (exit status 3)", `"Value":"invalid_config"`, "mcppool.spawn", "mcppool.handshake",
	)
}

func TestNoSecretOfAServerOverHTTPGoesOut(t *testing.T) {
	l := newLife(t)
	l.UseWeb()
	l.requireFull()
	require.Contains(t, l.one(t, "tools/call refuse").Status().Description, "[redacted]")
	require.Len(t, l.named("mcppool.connect"), 4)
}

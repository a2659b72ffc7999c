package mcppoolprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolprom"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(telemetrytest.ServerEnv); kind != "" {
		telemetrytest.Serve(kind)
		return
	}
	os.Exit(m.Run())
}

// life is a pool whose servers are named in the metrics by their labels, the most
// that a user can let out.
type life struct {
	telemetrytest.Life
	metrics *mcppoolprom.Metrics
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{metrics: mcppoolprom.New(nil)}
	pool := newRealPool(t, l.metrics, mcppool.Options{MaxSessions: 1, Backoff: mcppool.Backoff{Failures: 2, Initial: time.Minute}})
	l.Life = telemetrytest.Life{T: t, Pool: pool, Caller: l}
	return l
}

// CallTool calls a tool through the pool, and looks at the metrics after it.
func (l *life) CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error) {
	defer l.scrape()
	return l.Pool.CallTool(ctx, srv, call)
}

// scrape returns the page that Prometheus gets, which has no secret.
func (l *life) scrape() string {
	l.T.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry(l.T, l.metrics), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(l.T, http.StatusOK, w.Code)
	page := w.Body.String()
	telemetrytest.RequireNoSecret(l.T, page)
	return page
}

// requireFull closes the pool and checks that the page has all of some samples,
// above zero, without which the life was not a full one.
func (l *life) requireFull(samples ...string) {
	l.T.Helper()
	require.NoError(l.T, l.Pool.Close())
	page := l.scrape()
	for _, sample := range samples {
		require.Regexp(l.T, `(?m)^`+sample+` [1-9]`, page)
	}
}

func TestNoSecretOfAChildGoesOut(t *testing.T) {
	l := newLife(t)
	srv := telemetrytest.Secretive(t, telemetrytest.Raw)
	srv.Protocol = mcppool.ProtocolLegacy
	l.UseChild(srv)
	failing := telemetrytest.Secretive(t, telemetrytest.Exiting)
	failing.Protocol = mcppool.ProtocolLegacy
	missing := telemetrytest.Secretive(t, telemetrytest.Raw)
	missing.Command = "no-such-program"
	for _, srv := range []mcppool.Server{failing, missing} {
		for range 3 { // the third is held off
			require.Error(t, l.Call(srv, "tell", "s"))
		}
	}
	count := func(of, outcome string, srv mcppool.Server) string {
		return fmt.Sprintf(`mcppool_%s_duration_seconds_count{outcome="%s",server="%s"}`, of, outcome, mcppool.Origin{Server: srv.String()}.ServerName())
	}
	l.requireFull(
		count("call", "ok", srv), count("call", "tool error", srv), count("call", "rpc error", srv), count("call", "timeout", srv),
		count("call", "lost", srv), count("connect", "failed", failing), count("connect", "failed", missing),
		fmt.Sprintf(`mcppool_backoff_changes_total{server="%s",state="waiting"}`, mcppool.Origin{Server: failing.String()}.ServerName()),
		`mcppool_sessions_closed_total{reason="lru"}`, `mcppool_sessions_closed_total{reason="one-shot"}`,
		`mcppool_sessions_closed_total{reason="crashed"}`, `mcppool_sessions_closed_total{reason="timeout"}`,
	)
}

func TestNoSecretOfAServerOverHTTPGoesOut(t *testing.T) {
	l := newLife(t)
	closed := l.UseWeb()
	l.requireFull(
		`mcppool_calls_total{outcome="ok"}`, `mcppool_calls_total{outcome="rpc error"}`, `mcppool_connect_failures_total`,
		fmt.Sprintf(`mcppool_connect_duration_seconds_count{outcome="failed",server="%s"}`, mcppool.Origin{Server: closed.String()}.ServerName()),
	)
}

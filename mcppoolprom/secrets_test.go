package mcppoolprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolprom"
)

// mark is in each secret of these tests, and in nothing else.
const mark = "hush"

// secret has the mark more than once, so that a part of it shows too, and what
// gets escaped when it is written.
func secret(name string) string { return mark + "-" + name + "-" + mark + `" \<&%-` + mark }

// secretive is a child with secrets in all that can hold some.
func secretive(t testing.TB, kind string) mcppool.Server {
	t.Helper()
	srv := child(t, kind)
	srv.Protocol = mcppool.ProtocolLegacy
	srv.Args = []string{"--token", secret("flag"), "--api-key=" + secret("equals"), "-H", "Authorization: Bearer " + secret("bearer")}
	srv.Env["TOKEN"] = secret("env")
	srv.Env["NEUTRAL"] = secret("neutral")
	srv.Env["DATABASE"] = "mysql://" + url.UserPassword(secret("user"), secret("password")).String() + "@db/x"
	return srv
}

// life is a pool whose servers are named in the metrics by their labels, the most
// that a user can let out.
type life struct {
	t       *testing.T
	pool    *mcppool.Pool
	metrics *mcppoolprom.Metrics
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{t: t, metrics: mcppoolprom.New(&mcppoolprom.Options{ServerName: func(label string) string { return label }})}
	l.pool = newRealPool(t, l.metrics, mcppool.Options{MaxSessions: 1, Backoff: mcppool.Backoff{After: 2, Initial: time.Minute}})
	return l
}

// call calls a tool with a secret argument. The result, if there is one, must
// have the secrets: it is the caller's.
func (l *life) call(srv mcppool.Server, tool, scope string) error {
	l.t.Helper()
	patience := time.Minute
	if tool == "hang" {
		patience = 50 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	res, err := l.pool.CallTool(ctx, srv, mcppool.Call{Tool: tool, Scope: scope, Args: map[string]string{"password": secret("argument")}})
	if err == nil {
		require.Contains(l.t, res.Content[0].(mcp.TextContent).Text, mark)
	}
	l.scrape()
	return err
}

// scrape looks at the page that Prometheus gets.
func (l *life) scrape() string {
	l.t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry(l.t, l.metrics), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(l.t, http.StatusOK, w.Code)
	page := w.Body.String()
	for line := range strings.Lines(page) {
		if strings.Contains(line, mark) {
			l.t.Errorf("leak: %s", line)
		}
	}
	return page
}

// has looks whether the page has all of some samples that aren't zero, without
// which the life was not a full one.
func (l *life) has(samples ...string) {
	l.t.Helper()
	page := l.scrape()
	for _, sample := range samples {
		require.Regexp(l.t, `(?m)^`+sample+` [1-9]`, page)
	}
}

func TestNoSecretOfAChildGoesOut(t *testing.T) {
	l := newLife(t)
	srv := secretive(t, rawServer)
	require.NoError(t, l.call(srv, "tell", mark+" scope"))
	require.NoError(t, l.call(srv, "fail", mark+" scope"))
	require.NoError(t, l.call(srv, "tell", ""))
	require.NoError(t, l.call(srv, "tell", "another"))
	require.Eventually(t, func() bool { return l.pool.Stats().Closed[mcppool.CloseLRU] > 0 }, 10*time.Second, time.Millisecond)
	var refused *mcppool.RPCError
	require.ErrorAs(t, l.call(srv, "missing", "another"), &refused)
	require.Contains(t, refused.Message, "[redacted]", "it had secrets to tell")
	require.ErrorIs(t, l.call(srv, "hang", "another"), context.DeadlineExceeded)
	require.ErrorIs(t, l.call(srv, "die", "another"), mcppool.ErrSessionLost)

	failing := secretive(t, exitingServer)
	missing := secretive(t, rawServer)
	missing.Command = "no-such-program"
	for _, srv := range []mcppool.Server{failing, missing} {
		for range 3 { // the third is held off
			require.Error(t, l.call(srv, "tell", "s"))
		}
	}
	require.NoError(t, l.pool.Close())
	count := func(of, outcome string, srv mcppool.Server) string {
		return fmt.Sprintf(`mcppool_%s_duration_seconds_count{outcome="%s",server="%s"}`, of, outcome, srv)
	}
	l.has(
		count("call", "ok", srv), count("call", "tool error", srv), count("call", "rpc error", srv), count("call", "timeout", srv),
		count("call", "lost", srv), count("connect", "failed", failing), count("connect", "failed", missing),
		fmt.Sprintf(`mcppool_breaker_changes_total{server="%s",state="open"}`, failing),
		`mcppool_sessions_closed_total{reason="lru"}`, `mcppool_sessions_closed_total{reason="one-shot"}`,
		`mcppool_sessions_closed_total{reason="crashed"}`, `mcppool_sessions_closed_total{reason="timeout"}`,
	)
}

func TestNoSecretOfAServerOverHTTPGoesOut(t *testing.T) {
	l := newLife(t)
	told := server.NewMCPServer(secret("header"), "1")
	told.AddTool(mcp.NewTool("tell"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.Header)), nil
	})
	mux := http.NewServeMux()
	mux.Handle("/ok", server.NewStreamableHTTPServer(told))
	mux.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		all, _ := httputil.DumpRequest(r, true)
		http.Error(w, r.URL.String()+"\n"+string(all), http.StatusUnauthorized)
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	at := func(path string) mcppool.Server {
		u, err := url.Parse(web.URL + path)
		require.NoError(t, err)
		u.User = url.UserPassword(secret("user"), secret("password"))
		u.RawQuery = url.Values{"key": {secret("query")}}.Encode()
		return mcppool.Server{URL: u.String(), Header: map[string]string{"X-Api-Key": secret("header"), "X-Auth": "Bearer " + secret("bearer")}}
	}
	require.NoError(t, l.call(at("/ok"), "tell", ""))
	require.Error(t, l.call(at("/ok"), "missing", ""))
	require.Error(t, l.call(at("/closed"), "tell", ""))
	require.NoError(t, l.pool.Close())
	l.has(
		`mcppool_calls_total{outcome="ok"}`, `mcppool_calls_total{outcome="rpc error"}`, `mcppool_connect_failures_total`,
		fmt.Sprintf(`mcppool_connect_duration_seconds_count{outcome="failed",server="%s"}`, at("/closed")),
	)
}

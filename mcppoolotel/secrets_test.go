package mcppoolotel_test

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
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// mark is in each secret of these tests, and in nothing else.
const mark = "hush"

// secret has the mark more than once, so that a part of it shows too, and what
// gets escaped when it is written.
func secret(name string) string { return mark + "-" + name + "-" + mark + `" \<&%-` + mark }

// secretive is a server with secrets in all that can hold some.
func secretive(t testing.TB, kind string) mcppool.Server {
	t.Helper()
	srv := child(t, kind)
	srv.Args = []string{"--token", secret("flag"), "--api-key=" + secret("equals"), "-H", "Authorization: Bearer " + secret("bearer")}
	srv.Env["TOKEN"] = secret("env")
	srv.Env["NEUTRAL"] = secret("neutral")
	srv.Env["DATABASE"] = "mysql://" + url.UserPassword(secret("user"), secret("password")).String() + "@db/x"
	return srv
}

// life is a pool with all that this module adds to it, of which nothing that goes
// out may have the mark in it.
type life struct {
	*bench
	t *testing.T
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{t: t, bench: newBench(t, nil, mcppool.Options{MaxSessions: 1, Backoff: mcppool.Backoff{After: 1000}}, mcppoolotel.Options{})}
	reg, err := mcppoolotel.Observe(l.pool, &l.opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Unregister()) })
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
	res, err := l.tools.CallTool(ctx, srv, mcppool.Call{
		Tool: tool, Scope: scope, Args: map[string]string{"password": secret("argument")},
	})
	if err == nil {
		require.Contains(l.t, res.Content[0].(mcp.TextContent).Text, mark)
	}
	return err
}

// ended closes the pool and looks at what went out.
func (l *life) ended() string {
	l.t.Helper()
	require.NoError(l.t, l.pool.Close())
	out := l.everything(l.t)
	for line := range strings.Lines(out) {
		if i := strings.Index(line, mark); i >= 0 {
			l.t.Errorf("leak: …%q…", line[max(0, i-80):min(len(line), i+80)])
		}
	}
	return out
}

func TestNoSecretOfAChildGoesOut(t *testing.T) {
	l := newLife(t)
	srv := secretive(t, rawServer)
	srv.Protocol = mcppool.ProtocolLegacy
	require.NoError(t, l.pool.Prewarm(t.Context(), srv, 1))
	require.NoError(t, l.call(srv, "tell", mark+" scope"))
	require.NoError(t, l.call(srv, "fail", mark+" scope"))
	require.NoError(t, l.call(srv, "tell", ""))
	require.NoError(t, l.call(srv, "tell", "another"))
	require.Eventually(t, func() bool { return l.pool.Stats().Closed[mcppool.CloseLRU] > 0 }, 10*time.Second, time.Millisecond)

	var refused *mcppool.RPCError
	require.ErrorAs(t, l.call(srv, "missing", "another"), &refused)
	_, err := l.pool.ListTools(t.Context(), srv, "another")
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, l.pool.Do(t.Context(), srv, "another", func(ctx context.Context, s *mcppool.Session) error {
		_, err := s.CallTool(ctx, mcppool.Call{Tool: "missing in Do"})
		return err
	}), &refused)
	require.ErrorIs(t, l.call(srv, "hang", "another"), context.DeadlineExceeded)
	var lost *mcppool.LostError
	require.ErrorAs(t, l.call(srv, "die", "another"), &lost)
	require.Contains(t, lost.Stderr, "[redacted]", "it had secrets to tell")

	out := l.ended()
	for _, told := range []string{
		`"error.type","Value":{"Type":"STRING","Value":"tool_error"`, `"Value":"-32601"`, `"Value":"timeout"`,
		"the session was lost (exit status 7)", "[redacted]", "mcppool.close.reason=lru:1", "mcppool.close.reason=one-shot:1",
	} {
		require.Contains(t, out, told, "the life was not a full one")
	}
	require.Contains(t, l.one(t, "tools/call missing").Status().Description, "[redacted]")
	require.Contains(t, l.one(t, "tools/call missing in Do").Status().Description, "[redacted]")
}

func TestNoSecretOfAChildThatDoesNotStartGoesOut(t *testing.T) {
	l := newLife(t)
	missing := secretive(t, rawServer)
	missing.Command = "no-such-program"
	noDir := secretive(t, rawServer)
	noDir.Dir = "/no/such/directory"
	for _, srv := range []mcppool.Server{
		missing, noDir, secretive(t, exitingServer), secretive(t, refusingServer), secretive(t, oddServer),
	} {
		require.Error(t, l.call(srv, "tell", "s"))
		require.Error(t, l.pool.Prewarm(t.Context(), srv, 1))
	}
	// What is no configuration is refused with its field's name alone.
	require.Error(t, l.call(mcppool.Server{Command: "c", Env: map[string]string{"A": mark + "\x00"}}, "tell", "s"))
	out := l.ended()
	for _, told := range []string{
		"the server did not start", "the server did not connect (exit status 3)", `"Value":"invalid_config"`, "mcppool.spawn", "mcppool.handshake",
	} {
		require.Contains(t, out, told, "the life was not a full one")
	}
}

func TestNoSecretOfAServerOverHTTPGoesOut(t *testing.T) {
	l := newLife(t)
	told := server.NewMCPServer(secret("header"), "1")
	told.AddTool(mcp.NewTool("tell"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.Header)), nil
	})
	told.AddTool(mcp.NewTool("refuse"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("refused %v", req.Header)
	})
	mux := http.NewServeMux()
	mux.Handle("/ok", server.NewStreamableHTTPServer(told))
	mux.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		all, _ := httputil.DumpRequest(r, true)
		http.Error(w, r.URL.String()+"\n"+string(all), http.StatusUnauthorized)
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	at := func(base, path string) mcppool.Server {
		u, err := url.Parse(base + path)
		require.NoError(t, err)
		u.User = url.UserPassword(secret("user"), secret("password"))
		u.RawQuery = url.Values{"key": {secret("query")}}.Encode()
		return mcppool.Server{URL: u.String(), Header: map[string]string{"X-Api-Key": secret("header"), "X-Auth": "Bearer " + secret("bearer")}}
	}
	require.NoError(t, l.call(at(web.URL, "/ok"), "tell", ""))
	var refused *mcppool.RPCError
	require.ErrorAs(t, l.call(at(web.URL, "/ok"), "refuse", ""), &refused)
	require.Error(t, l.call(at(web.URL, "/closed"), "tell", ""))
	require.Error(t, l.call(at("http://127.0.0.1:1", "/"), "tell", ""))
	l.ended()
	require.Contains(t, l.one(t, "tools/call refuse").Status().Description, "[redacted]")
	require.Len(t, l.named("mcppool.connect"), 4)
}

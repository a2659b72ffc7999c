package mcppoolotel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// mark is in every secret and nowhere else.
const mark = "s3cr3tm4rk"

func secret(name string) string { return mark + "-" + name + "-" + mark }

// told is all that was exported, as text.
func (b *bench) told(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, s := range tracetest.SpanStubsFromReadOnlySpans(b.spans.Ended()) {
		fmt.Fprintf(&all, "%s %+v %+v %+v %+v\n", s.Name, s.Attributes, s.Events, s.Status, s.Links)
	}
	for _, m := range b.collect(t) {
		text, err := json.Marshal(m)
		require.NoError(t, err)
		all.Write(text)
		fmt.Fprintf(&all, "%+v %v\n", m, points(m))
	}
	return all.String()
}

func TestNoSecretIsInSpansAndMetrics(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{MaxSessions: 1}, mcppoolotel.Options{})
	gauges, err := mcppoolotel.Observe(b.pool, &b.opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, gauges.Unregister()) }()
	call := func(ctx context.Context, srv mcppool.Server, tool, scope string) error {
		_, err := b.tools.CallTool(ctx, srv, mcppool.Call{
			Tool: tool, Scope: scope, Args: map[string]string{"x": secret("argument")},
		})
		return err
	}
	withSecrets := func(how string) mcppool.Server {
		srv := childOf(t, how)
		srv.Args = []string{"--token", secret("arg")}
		srv.Env["TOKEN"] = secret("env")
		return srv
	}
	srv, scope := withSecrets("1"), secret("scope")
	require.NoError(t, call(t.Context(), srv, "tell", scope))
	require.NoError(t, call(t.Context(), srv, "fail", scope))
	require.Error(t, call(t.Context(), srv, "broken", scope))
	require.NoError(t, call(t.Context(), srv, "tell", secret("another scope")), "evicts the first")
	require.ErrorIs(t, call(t.Context(), srv, "die", scope), mcppool.ErrSessionLost)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, call(ctx, srv, "sleep", scope), context.DeadlineExceeded)
	require.NoError(t, call(t.Context(), srv, "tell", ""))
	require.Error(t, call(t.Context(), withSecrets("exits"), "tell", scope))

	tools := server.NewMCPServer(secret("header"), "1")
	tools.AddTool(mcp.NewTool("broken"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("broken with %s", req.Header.Get("X-Api-Key"))
	})
	web := httptest.NewServer(server.NewStreamableHTTPServer(tools))
	defer web.Close()
	atURL := mcppool.Server{
		URL:    strings.Replace(web.URL, "://", "://user:"+secret("password")+"@", 1) + "/mcp?key=" + secret("query"),
		Header: map[string]string{"X-Api-Key": secret("header")},
	}
	require.Error(t, call(t.Context(), atURL, "broken", scope))
	atURL.URL = strings.Replace(atURL.URL, "127.0.0.1", "127.0.0.1.invalid", 1)
	require.Error(t, call(t.Context(), atURL, "broken", scope))
	b.pool.CloseServer(srv)

	told := b.told(t)
	require.Contains(t, told, "[redacted]", "there was something to tell")
	for _, want := range []string{"tools/call die", "mcppool.handshake", "session_lost", "start_failed", "tool_error", "timeout", "mcppool.session.closed"} {
		require.Contains(t, told, want)
	}
	require.NotContains(t, told, mark)
}

package mcppooltest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

func realPool(t testing.TB, opts *mcppool.Options) *mcppool.Pool {
	t.Helper()
	pool, err := mcppool.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	return pool
}

// tell calls a tool of a real server.
func tell(t testing.TB, pool *mcppool.Pool, srv mcppool.Server, call mcppool.Call) string {
	t.Helper()
	call.Scope = "s"
	res, err := pool.CallTool(t.Context(), srv, call)
	require.NoError(t, err)
	require.Len(t, res.Content, 1)
	return res.Content[0].(mcp.TextContent).Text
}

func TestServerThatBehavesWell(t *testing.T) {
	mcppooltest.NoLeaks(t)
	pool := realPool(t, &mcppool.Options{Handlers: mcppool.Handlers{
		Roots: func(context.Context, mcppool.Origin) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///a"}}, nil },
	}})
	srv := mcppooltest.Server(t)
	srv.Env["COLOUR"] = "blue"
	text := func(s string) map[string]any { return map[string]any{"text": s} }
	require.Equal(t, "hello", tell(t, pool, srv, mcppool.Call{Tool: "echo", Args: text("hello")}))
	require.Equal(t, "a", tell(t, pool, srv, mcppool.Call{Tool: "note", Args: text("a")}))
	require.Equal(t, "a\nb", tell(t, pool, srv, mcppool.Call{Tool: "note", Args: text("b")}))
	require.Equal(t, "blue", tell(t, pool, srv, mcppool.Call{Tool: "getenv", Args: text("COLOUR")}))
	require.JSONEq(t, `{"x":1}`, tell(t, pool, srv, mcppool.Call{Tool: "args", Args: map[string]any{"x": 1}}))
	require.JSONEq(t, `{"roots":[{"uri":"file:///a"}]}`,
		tell(t, pool, srv, mcppool.Call{Tool: "ask", Args: map[string]any{"method": "roots/list"}})[len("result "):])

	var progress []float64
	onProgress := func(n mcp.ProgressNotification) { progress = append(progress, n.Params.Progress) }
	tell(t, pool, srv, mcppool.Call{Tool: "notify", Args: map[string]any{"n": 3}, OnProgress: onProgress})
	given := map[string]any{
		"result": json.RawMessage(`{"content":[{"type":"text","text":"as given"}]}`),
		"before": []any{json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%TOKEN%","progress":4}}`)},
	}
	require.Equal(t, "as given", tell(t, pool, srv, mcppool.Call{Tool: "result", Args: given, OnProgress: onProgress}))
	require.Equal(t, []float64{1, 2, 3, 4}, progress)

	tools, err := pool.ListTools(t.Context(), srv, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	require.Greater(t, len(tools), 20)
}

func TestServerThatDiesDuringACall(t *testing.T) {
	mcppooltest.NoLeaks(t)
	pool := realPool(t, nil)
	_, err := pool.CallTool(t.Context(), mcppooltest.Server(t, "die=call", "wrapper", "crlf"), mcppool.Call{Tool: "echo", Scope: "s"})
	var lost *mcppool.SessionLostError
	require.ErrorAs(t, err, &lost)
	require.Contains(t, lost.Stderr, "no database")
}

func TestServerThatIsSlowToStart(t *testing.T) {
	mcppooltest.NoLeaks(t)
	pool := realPool(t, nil)
	begun := time.Now()
	tell(t, pool, mcppooltest.Server(t, "slowstart=300ms"), mcppool.Call{Tool: "pid"})
	require.GreaterOrEqual(t, time.Since(begun), 300*time.Millisecond)
}

func TestServerIsNoneOfAnUnknownMode(t *testing.T) {
	inner := &fakeT{TB: t}
	require.PanicsWithValue(t, `mcppooltest: there is no mode "crfl" of a server`, func() {
		mcppooltest.Server(inner, "crlf", "crfl=1")
	})
	srv := mcppooltest.Server(t)
	srv.Env = mcppooltest.Env("crfl")
	_, err := realPool(t, nil).CallTool(t.Context(), srv, mcppool.Call{Tool: "pid", Scope: "s"})
	var start *mcppool.StartError
	require.ErrorAs(t, err, &start)
	require.Contains(t, start.Stderr, `no mode "crfl"`)
}

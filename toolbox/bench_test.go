package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// noop is a client that costs nothing, so that what is measured is the box.
type noop struct {
	done  chan struct{}
	tools []mcp.Tool
}

var answer = mcp.NewToolResultText("ok")

func (c *noop) CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return answer, nil
}

func (c *noop) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{Tools: c.tools}, nil
}
func (c *noop) Done() <-chan struct{} { return c.done }
func (c *noop) Err() error            { return nil }
func (c *noop) Close() error          { return nil }

func noopPool(b testing.TB, tools ...mcp.Tool) *mcppool.Pool {
	b.Helper()
	p, err := mcppool.New(&mcppool.Options{Dial: func(context.Context, mcppool.Server) (mcppool.Client, error) {
		return &noop{done: make(chan struct{}), tools: tools}, nil
	}})
	require.NoError(b, err)
	b.Cleanup(func() { p.Close() })
	return p
}

// typical has what an entry of a configuration file usually has.
func typical(id string) toolbox.Entry {
	return toolbox.Entry{ID: id, Server: mcppool.Server{
		Command: "npx",
		Args:    []string{"-y", "@playwright/mcp@latest", "--headless", "--isolated", id},
		Env:     map[string]string{"API_KEY": "sk-0123456789abcdef0123456789abcdef", "LOG_LEVEL": "warn", "REGION": "eu"},
	}}
}

var smallArgs = json.RawMessage(`{"url":"https://example.com","timeout":5}`)

// BenchmarkDispatch is a call by name on a warm session; its sub-benchmark
// "pool" is the same call without the box.
func BenchmarkDispatch(b *testing.B) {
	pool := noopPool(b)
	e := typical("browser")
	box, err := toolbox.New(pool, static(b, e), nil)
	require.NoError(b, err)
	ctx := b.Context() // can be cancelled, as a request's can
	b.Run("pool", func(b *testing.B) {
		b.ReportAllocs()
		scope := conv.Scope()
		for b.Loop() {
			if _, err := pool.CallTool(ctx, e.Server, mcppool.Call{Tool: "navigate", Args: smallArgs, Scope: scope}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("box", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out := box.Dispatch(ctx, "mcp__browser__navigate", smallArgs, conv); out.Err != nil {
				b.Fatal(out.Err)
			}
		}
	})
}

// BenchmarkToolsFromCache is Tools of 50 servers with 40 tools each.
func BenchmarkToolsFromCache(b *testing.B) {
	var entries []toolbox.Entry
	for i := range 50 {
		entries = append(entries, typical(fmt.Sprintf("server-%d", i)))
	}
	var specs []mcp.Tool
	for i := range 40 {
		specs = append(specs, mcp.NewTool(fmt.Sprintf("tool_%d", i), mcp.WithString("arg")))
	}
	box, err := toolbox.New(noopPool(b, specs...), static(b, entries...), nil)
	require.NoError(b, err)
	require.Len(b, tools(b, box).Tools, 2000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := box.Tools(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDispatchAllocatesLittleMoreThanTheCallItself(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	pool := noopPool(t)
	e := typical("browser")
	box, err := toolbox.New(pool, static(t, e), nil)
	require.NoError(t, err)
	scope := conv.Scope()
	call := testing.AllocsPerRun(200, func() {
		_, _ = pool.CallTool(t.Context(), e.Server, mcppool.Call{Tool: "navigate", Args: smallArgs, Scope: scope})
	})
	dispatch := testing.AllocsPerRun(200, func() {
		_ = box.Dispatch(t.Context(), "mcp__browser__navigate", smallArgs, conv)
	})
	require.LessOrEqual(t, dispatch-call, 15.0)
}

package mcpservers_test

import (
	"context"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// fakes is a Dial whose servers live in memory. A server's name is its command.
type fakes struct {
	mu    sync.Mutex
	dials map[string]int
	open  map[string]int
}

type fake struct {
	f    *fakes
	name string
	done chan struct{}
	once sync.Once
}

func newPool(t testing.TB, f *fakes) *mcppool.Pool {
	t.Helper()
	f.dials, f.open = make(map[string]int), make(map[string]int)
	p, err := mcppool.New(&mcppool.Options{Dial: f.dial})
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func (f *fakes) dial(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials[srv.Command]++
	f.open[srv.Command]++
	return &fake{f: f, name: srv.Command, done: make(chan struct{})}, nil
}

func (f *fakes) dialed(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials[name]
}

func (f *fakes) opened(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[name]
}

func (c *fake) CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(c.name), nil
}

func (c *fake) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{Tools: []mcp.Tool{mcp.NewTool("t"), mcp.NewTool("x")}}, nil
}

func (c *fake) Done() <-chan struct{} { return c.done }
func (c *fake) Err() error            { return nil }

func (c *fake) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.f.mu.Lock()
		defer c.f.mu.Unlock()
		c.f.open[c.name]--
	})
	return nil
}

package toolbox_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// fakes is a Dial whose servers live in memory. A server's name is its command.
type fakes struct {
	connect func(ctx context.Context, name string) error
	list    func(ctx context.Context, name string) ([]mcp.Tool, error)
	listOf  func(c *fake) []mcp.Tool
	call    func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error)

	mu    sync.Mutex
	dials map[string]int
	lists map[string]int
	open  map[string]int
	calls []string // name, tool and arguments, in order of arrival
}

type fake struct {
	f    *fakes
	name string
	done chan struct{}
	once sync.Once
}

func (f *fakes) dial(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
	f.count(&f.dials, srv.Command, 1)
	if f.connect != nil {
		if err := f.connect(ctx, srv.Command); err != nil {
			return nil, err
		}
	}
	f.count(&f.open, srv.Command, 1)
	return &fake{f: f, name: srv.Command, done: make(chan struct{})}, nil
}

func (f *fakes) count(m *map[string]int, name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *m == nil {
		*m = make(map[string]int)
	}
	(*m)[name] += n
}

func (f *fakes) dialed(name string) int { return f.get(&f.dials, name) }
func (f *fakes) listed() int            { return f.get(&f.lists, "s") }
func (f *fakes) opened(name string) int { return f.get(&f.open, name) }

func (f *fakes) get(m *map[string]int, name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (*m)[name]
}

func (f *fakes) served() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (c *fake) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c.f.mu.Lock()
	c.f.calls = append(c.f.calls, c.name+" "+req.Params.Name+" "+string(req.Params.RawArguments))
	c.f.mu.Unlock()
	if c.f.call != nil {
		return c.f.call(ctx, c, req)
	}
	return mcp.NewToolResultText(c.name + "." + req.Params.Name), nil
}

func (c *fake) ListTools(ctx context.Context, _ mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	c.f.count(&c.f.lists, c.name, 1)
	if c.f.listOf != nil {
		return &mcp.ListToolsResult{Tools: c.f.listOf(c)}, nil
	}
	if c.f.list == nil {
		return &mcp.ListToolsResult{Tools: []mcp.Tool{mcp.NewTool("echo", mcp.WithDescription("of "+c.name))}}, nil
	}
	tools, err := c.f.list(ctx, c.name)
	if err != nil {
		return nil, err
	}
	return &mcp.ListToolsResult{Tools: tools}, nil
}

func (c *fake) Done() <-chan struct{} { return c.done }
func (c *fake) Err() error            { return nil }

func (c *fake) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.f.count(&c.f.open, c.name, -1)
	})
	return nil
}

// sleep ends early with ctx and with the connection.
func (c *fake) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return context.Canceled
	}
}

func newPool(t testing.TB, f *fakes) *mcppool.Pool {
	t.Helper()
	p, err := mcppool.New(&mcppool.Options{Dial: f.dial})
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// newBox makes a box over a pool of f's, with entries of these ids whose
// commands are the ids.
func newBox(t testing.TB, f *fakes, opts *toolbox.Options, ids ...string) *toolbox.Box {
	t.Helper()
	return boxOf(t, newPool(t, f), static(t, entries(ids...)...), opts)
}

// boxOf makes a box that the test's end closes.
func boxOf(t testing.TB, pool toolbox.Caller, c toolbox.Catalog, opts *toolbox.Options) *toolbox.Box {
	t.Helper()
	b, err := toolbox.New(pool, c, opts)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func entries(ids ...string) []toolbox.Entry {
	list := make([]toolbox.Entry, len(ids))
	for i, id := range ids {
		list[i] = toolbox.Entry{ID: id, Server: mcppool.Server{Command: id}}
	}
	return list
}

func static(t testing.TB, entries ...toolbox.Entry) *toolbox.StaticCatalog {
	t.Helper()
	c, err := toolbox.NewStaticCatalog(entries...)
	require.NoError(t, err)
	return c
}

// editable is a catalog that a test changes.
type editable struct {
	mu      sync.Mutex
	entries map[string]toolbox.Entry
	err     error
	lookups int
}

func newEditable(entries ...toolbox.Entry) *editable {
	c := &editable{entries: make(map[string]toolbox.Entry)}
	for _, e := range entries {
		c.put(e)
	}
	return c
}

func (c *editable) put(e toolbox.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[e.ID] = e
}

func (c *editable) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, id)
}

func (c *editable) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *editable) Lookup(ctx context.Context, id string) (toolbox.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookups++
	e, ok := c.entries[id]
	switch {
	case c.err != nil:
		return toolbox.Entry{}, c.err
	case !ok:
		return toolbox.Entry{}, toolbox.ErrUnknownServer
	}
	return e, ctx.Err()
}

func (c *editable) List(ctx context.Context) ([]toolbox.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []toolbox.Entry
	for _, e := range c.entries {
		if !e.Disabled {
			list = append(list, e)
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return list, ctx.Err()
}

var conv = toolbox.Conversation{Project: "p1", Thread: "t7"}

func dispatch(t testing.TB, b *toolbox.Box, name, args string) toolbox.Output {
	t.Helper()
	return b.Dispatch(t.Context(), name, json.RawMessage(args), conv)
}

func names(set *toolbox.ToolSet) []string {
	var list []string
	for _, t := range set.Tools {
		list = append(list, t.Name)
	}
	return list
}

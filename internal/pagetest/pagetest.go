// Package pagetest is a pool of servers in memory behind a page of pooldebug, for tests
// of what a page says and of what a browser makes of it.
package pagetest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// Hostile is what a server may call itself, and write in errors. In a page that
// takes it for HTML it changes the title.
const Hostile = `"><img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>` + "\x1b[31m\u202e</script>"

// client is a connection in memory. What a call does is said by its tool's name.
type client struct {
	name string
	done chan struct{}
	once sync.Once
}

func (c *client) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	switch req.Params.Name {
	case "wait":
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, errors.New("closed")
		}
	case "fail":
		return nil, &mcppool.RPCError{Code: 1, Message: Hostile}
	case "second":
		time.Sleep(time.Second)
	}
	return mcp.NewToolResultText("done"), nil
}

func (c *client) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}

func (c *client) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("not offered")
}

func (c *client) Notify(context.Context, string, json.RawMessage) error { return nil }

func (c *client) Info() *mcp.InitializeResult {
	return &mcp.InitializeResult{ProtocolVersion: "2025-11-25", ServerInfo: mcp.Implementation{Name: c.name, Version: "1"}}
}

func (c *client) Done() <-chan struct{} { return c.done }
func (c *client) Err() error            { return nil }
func (c *client) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// Dial connects to the server that is called as srv's first argument is.
func Dial(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
	c := &client{name: "unnamed", done: make(chan struct{})}
	if len(srv.Args) > 0 {
		c.name = srv.Args[0]
	}
	if c.name == "broken" {
		return nil, errors.New(Hostile)
	}
	return c, nil
}

// Named is a server in memory that calls itself so.
func Named(name string) mcppool.Server {
	return mcppool.Server{Command: "server", Args: []string{name}}
}

// Shown is a pool and its page, served.
type Shown struct {
	*mcppool.Pool
	Page *pooldebug.Page
	URL  string
}

// Show makes a pool of servers in memory and its page, at a path of some depth. It ends
// with the test.
func Show(t testing.TB, opts *pooldebug.Options, poolOpts mcppool.Options) *Shown {
	t.Helper()
	page := pooldebug.New(opts)
	poolOpts.Trace = page.Trace()
	if poolOpts.Dial == nil {
		poolOpts.Dial = Dial
	}
	pool, err := mcppool.New(&poolOpts)
	if err != nil {
		t.Fatal(err)
	}
	page.Attach(pool)
	mux := http.NewServeMux()
	mux.Handle("/behind/some/prefix/", page)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		_ = pool.Close()
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &Shown{pool, page, srv.URL + "/behind/some/prefix/"}
}

// Call calls a tool.
func (s *Shown) Call(t testing.TB, srv mcppool.Server, scope, tool string) error {
	t.Helper()
	_, err := s.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Scope: scope})
	return err
}

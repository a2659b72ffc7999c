package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// hostile is what a server may call itself, and write in errors. In a page that
// takes it for HTML it changes the title.
const hostile = `"><img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>` + "\x1b[31m\u202e</script>"

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
		return nil, &mcppool.RPCError{Code: 1, Message: hostile}
	}
	return mcp.NewToolResultText("done"), nil
}

func (c *client) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}

func (c *client) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("not offered")
}

func (c *client) Info() *mcp.InitializeResult {
	return &mcp.InitializeResult{ProtocolVersion: "2025-11-25", ServerInfo: mcp.Implementation{Name: c.name, Version: "1"}}
}

func (c *client) Done() <-chan struct{} { return c.done }
func (c *client) Err() error            { return nil }
func (c *client) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// dial connects to the server that is called as srv's argument is.
func dial(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
	if srv.Args[0] == "broken" {
		return nil, errors.New(hostile)
	}
	return &client{name: srv.Args[0], done: make(chan struct{})}, nil
}

func named(name string) mcppool.Server {
	return mcppool.Server{Command: "server", Args: []string{name}}
}

// shown is a pool and its page, served.
type shown struct {
	*mcppool.Pool
	page *pooldebug.Page
	url  string
}

// show makes a pool of in-memory servers and its page, at a path of some depth.
func show(t *testing.T, opts *pooldebug.Options, limits mcppool.Limits) *shown {
	t.Helper()
	page := pooldebug.New(opts)
	pool, err := mcppool.New(&mcppool.Options{Dial: dial, Trace: page.Trace(), Limits: limits})
	require.NoError(t, err)
	page.Attach(pool)
	mux := http.NewServeMux()
	mux.Handle("/behind/some/prefix/", page)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		_ = pool.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return &shown{pool, page, srv.URL + "/behind/some/prefix/"}
}

func (s *shown) call(t *testing.T, srv mcppool.Server, scope, tool string) error {
	t.Helper()
	_, err := s.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Scope: scope})
	return err
}

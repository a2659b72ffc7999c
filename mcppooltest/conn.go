package mcppooltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Conn is one connection to a fake server, which is a process of a real one. Its
// methods are safe for concurrent use.
type Conn struct {
	// ID is 1 for the first connect of the Fakes, and so on.
	ID int
	// Server is the server as it was to be started.
	Server mcppool.Server
	// Tools are this connection's, those of the Fakes unless [Fakes.Connect] sets them.
	Tools Tools

	fakes    *Fakes
	handlers rpc.Handlers

	live context.Context // ends with the connection, whose end its cause is
	lose context.CancelCauseFunc

	mu      sync.Mutex // protects the fields below
	closed  int
	running int
	peak    int
}

var errClosed = errors.New("closed")

func (f *Fakes) newConn(ctx context.Context, srv mcppool.Server) *Conn {
	c := &Conn{Server: srv, Tools: f.Tools, fakes: f, handlers: rpc.HandlersOf(ctx)}
	c.live, c.lose = context.WithCancelCause(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	c.ID = f.dials
	return c
}

// String names the connection: the server's name, or else its program's, and the ID.
func (c *Conn) String() string {
	name := cmp.Or(c.Server.Name, filepath.Base(c.Server.Command))
	if c.Server.IsHTTP() {
		name = c.Server.String()
	}
	return fmt.Sprintf("%s#%d", name, c.ID)
}

// Die loses the connection, as the end of a process does: calls under way fail, and the
// next call gets a new connection. What [mcppool.SessionLostError] says of it is err.
func (c *Conn) Die(err error) {
	if c.live.Err() == nil {
		c.fakes.logf("%s: died: %v", c, err)
	}
	c.lose(err)
}

// Done is closed when the connection has died or the pool closes it.
func (c *Conn) Done() <-chan struct{} { return c.live.Done() }

// Closed returns how often the pool has closed the connection, which is once at the most.
func (c *Conn) Closed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Peak returns how many calls there were at a time at the most.
func (c *Conn) Peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak
}

// Calls returns the calls of this connection so far, in order of arrival.
func (c *Conn) Calls() (list []*Call) {
	for _, call := range c.fakes.Calls() {
		if call.Conn == c {
			list = append(list, call)
		}
	}
	return list
}

// Sample asks the client for a model's answer: [mcppool.Handlers.Sampling]. As with the
// other questions, the error is a [*mcppool.RPCError] of code -32601 when the pool has no
// such handler.
func (c *Conn) Sample(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	c.fakes.logf("%s: asks %s", c, mcp.MethodSamplingCreateMessage)
	if c.handlers.Sampling == nil {
		return nil, refused(mcp.MethodSamplingCreateMessage)
	}
	return c.handlers.Sampling(ctx, req)
}

// Elicit asks the client to ask its user: [mcppool.Handlers.Elicitation].
func (c *Conn) Elicit(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	c.fakes.logf("%s: asks %s", c, mcp.MethodElicitationCreate)
	if c.handlers.Elicitation == nil {
		return nil, refused(mcp.MethodElicitationCreate)
	}
	return c.handlers.Elicitation(ctx, req)
}

// Roots asks the client for its working folders: [mcppool.Handlers.Roots].
func (c *Conn) Roots(ctx context.Context) ([]mcp.Root, error) {
	c.fakes.logf("%s: asks %s", c, mcp.MethodListRoots)
	if c.handlers.Roots == nil {
		return nil, refused(mcp.MethodListRoots)
	}
	return c.handlers.Roots(ctx)
}

func refused(method mcp.MCPMethod) error {
	return &mcppool.RPCError{Code: rpc.CodeMethodNotFound, Message: "the client doesn't offer " + string(method)}
}

// Notify sends a notification to the client, such as "notifications/tools/list_changed":
// [mcppool.Handlers.Notification] is called with it before Notify returns. Progress is
// sent by [Call.Progress].
func (c *Conn) Notify(method string, params map[string]any) {
	c.fakes.logf("%s: notifies %s", c, method)
	if c.handlers.Notification == nil {
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	n.Params.AdditionalFields = params
	c.handlers.Notification(n)
}

// client is a Conn as the pool sees it.
type client struct{ c *Conn }

func (cl client) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return cl.c.call(ctx, req)
}

func (cl client) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	c := cl.c
	return under(ctx, c, func(ctx context.Context) (*mcp.ListToolsResult, error) {
		if c.fakes.List != nil {
			return c.fakes.List(ctx, c, req)
		}
		return c.Tools.listed(), ctx.Err()
	})
}

func (cl client) Done() <-chan struct{} { return cl.c.Done() }
func (cl client) Err() error            { return context.Cause(cl.c.live) }

func (cl client) Close() error {
	c := cl.c
	c.lose(errClosed)
	c.mu.Lock()
	c.closed++
	c.mu.Unlock()
	c.fakes.logf("%s: closed", c)
	if c.fakes.Close != nil {
		c.fakes.Close(c)
	}
	return nil
}

// requester is a client that answers other requests, too.
type requester struct{ client }

func (r requester) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c := r.c
	c.fakes.logf("%s: %s %s", c, method, params)
	return under(ctx, c, func(ctx context.Context) (json.RawMessage, error) {
		res, err := c.fakes.Request(ctx, c, method, params)
		if err != nil {
			return nil, err
		}
		return json.Marshal(res)
	})
}

func (r requester) Notify(_ context.Context, method string, params json.RawMessage) error {
	r.c.fakes.logf("%s: was notified of %s %s", r.c, method, params)
	return nil
}

func (r requester) Info() *mcp.InitializeResult {
	info := &mcp.InitializeResult{ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION}
	info.ServerInfo.Name = r.c.String()
	return info
}

// under runs f under a ctx that ends with ctx or c. An error of f when c is lost and ctx
// isn't over is the loss.
func under[T any](ctx context.Context, c *Conn, f func(context.Context) (T, error)) (T, error) {
	var none T
	if c.live.Err() != nil {
		return none, transport.NewError(transport.ErrTransportClosed)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.live, func() { cancel(context.Cause(c.live)) })()
	res, err := f(inner)
	switch {
	case err == nil:
		return res, nil
	case c.live.Err() != nil && ctx.Err() == nil:
		return none, transport.NewError(transport.ErrTransportClosed)
	}
	return none, err
}

func (f *Fakes) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, line)
}

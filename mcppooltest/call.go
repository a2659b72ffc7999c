package mcppooltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Tool answers calls. Its ctx ends with that of the caller and with the connection; it
// must return then. What it returns is the answer: an error that is a
// [*mcppool.RPCError] is the server's JSON-RPC error; see [mcppool.Client] for others.
type Tool func(ctx context.Context, call *Call) (*mcp.CallToolResult, error)

// Call is one call of a tool, as it came to the server.
type Call struct {
	// CallToolRequest is the request, whose arguments are decoded from JSON, as for a
	// real server: call.GetString("city", "") and its like read them.
	mcp.CallToolRequest
	// Conn is the connection that the call came by.
	Conn *Conn
	// Tool is the tool's name.
	Tool string
	// Args are the arguments as they went over the wire: a JSON object.
	Args json.RawMessage

	over atomic.Bool

	mu       sync.Mutex // one progress at a time; protects the field below
	progress func(mcp.ProgressNotification)
}

// String is the connection, the tool and the arguments.
func (c *Call) String() string { return fmt.Sprintf("%s: %s %s", c.Conn, c.Tool, c.Args) }

func (c *Call) ended() bool { return c.over.Load() }

// Progress tells the caller how far the call is: [mcppool.Call.OnProgress] is called
// before Progress returns. A total of zero and an empty message aren't sent. When the
// call is over, it does nothing.
func (c *Call) Progress(progress, total float64, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress == nil || c.ended() {
		return
	}
	var n mcp.ProgressNotification
	n.Method = "notifications/progress"
	n.Params = mcp.ProgressNotificationParams{Progress: progress, Total: total, Message: message}
	c.progress(n)
}

func (c *Conn) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	call := &Call{
		CallToolRequest: req, Conn: c, Tool: req.Params.Name, Args: req.Params.RawArguments,
		progress: rpc.ProgressOf(ctx),
	}
	var args map[string]any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	call.Params.Arguments = args
	c.begin(call)
	defer c.end(call)
	return under(ctx, c, func(ctx context.Context) (*mcp.CallToolResult, error) {
		return c.tool(call.Tool)(ctx, call)
	})
}

func (c *Conn) tool(name string) Tool {
	if tool := c.Tools[name]; tool != nil {
		return tool
	}
	if c.fakes.Other != nil {
		return c.fakes.Other
	}
	return Error(&mcppool.RPCError{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("unknown tool %q", name)})
}

func (c *Conn) begin(call *Call) {
	c.mu.Lock()
	c.running++
	c.peak = max(c.peak, c.running)
	c.mu.Unlock()
	f := c.fakes
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	f.log = append(f.log, call.String())
}

func (c *Conn) end(call *Call) {
	call.over.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

// Text answers with a text.
func Text(text string) Tool {
	return func(ctx context.Context, _ *Call) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(text), ctx.Err()
	}
}

// Fail answers that the tool ran and failed: a result with IsError, and a text.
func Fail(text string) Tool {
	return func(ctx context.Context, _ *Call) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError(text), ctx.Err()
	}
}

// Error answers with an error, such as a [*mcppool.RPCError].
func Error(err error) Tool {
	return func(context.Context, *Call) (*mcp.CallToolResult, error) { return nil, err }
}

// Delay answers as tool does, a while later.
func Delay(d time.Duration, tool Tool) Tool {
	return func(ctx context.Context, call *Call) (*mcp.CallToolResult, error) {
		if err := Sleep(ctx, d); err != nil {
			return nil, err
		}
		return tool(ctx, call)
	}
}

// Die loses the connection in place of an answer, as a server does that crashes.
func Die() Tool {
	return func(_ context.Context, call *Call) (*mcp.CallToolResult, error) {
		err := errors.New("the server died during " + call.Tool)
		call.Conn.Die(err)
		return nil, err
	}
}

// InOrder answers the first call as the first tool does, and so on, and all further calls
// as the last one does, counted over all connections.
func InOrder(first Tool, next ...Tool) Tool {
	var n atomic.Int64
	return func(ctx context.Context, call *Call) (*mcp.CallToolResult, error) {
		i := int(n.Add(1)) - 1
		if i == 0 || len(next) == 0 {
			return first(ctx, call)
		}
		return next[min(i, len(next))-1](ctx, call)
	}
}

// Sleep waits for d, and less if ctx ends, whose error it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package mcpconn

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/rounds"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// CallTool calls a tool. A [*rpc.NotSentError] says that the server has seen nothing
// of the call; once its first byte is out there is none, whatever comes after.
func (c *Conn) CallTool(ctx context.Context, call rpc.ToolCall) (*mcp.CallToolResult, error) {
	meta := c.meta.Load().Text()
	if call.Meta == nil && call.OnProgress == nil {
		return c.callWith(ctx, &call, meta)
	}
	token := ""
	if call.OnProgress != nil {
		token = c.progress.Add(call.OnProgress)
		defer c.progress.Remove(token)
	}
	meta, err := c.meta.Load().Joined(call.Meta, token)
	if err != nil {
		return nil, err
	}
	return c.callWith(ctx, &call, meta)
}

// callWith makes a call with all its rounds, each with the same _meta.
func (c *Conn) callWith(ctx context.Context, call *rpc.ToolCall, meta json.RawMessage) (*mcp.CallToolResult, error) {
	res, err := c.round(ctx, call, meta, nil)
	if err != nil || !res.NeedsInput() {
		return res, err
	}
	return rounds.Continue(ctx, c.child, &c.cfg.Handlers, res, func(more json.RawMessage) (*mcp.CallToolResult, error) {
		return c.round(ctx, call, meta, more)
	})
}

func (c *Conn) round(ctx context.Context, call *rpc.ToolCall, meta, more json.RawMessage) (*mcp.CallToolResult, error) {
	answer, err := c.child.Call(ctx, stdio.ToolCall{
		Tool: call.Tool, Args: call.Args, Meta: meta, More: more,
		Gate: call.Gate, Progress: call.OnProgress != nil, ID: call.ID,
	})
	if err != nil {
		return nil, err
	}
	defer answer.Release() // nothing of the result is part of what is decoded
	return c.decoder.DecodeScanned(answer.Result, answer.Long)
}

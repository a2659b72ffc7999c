package cluster_test

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// counter is a server in memory, whose state is how often it was called.
type counter struct {
	calls atomic.Int64
	done  chan struct{}
}

func dialCounter(context.Context, mcppool.Server) (mcppool.Client, error) {
	return &counter{done: make(chan struct{})}, nil
}

func (c *counter) CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(strconv.FormatInt(c.calls.Add(1), 10)), nil
}

func (c *counter) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}
func (c *counter) Done() <-chan struct{} { return c.done }
func (c *counter) Err() error            { return nil }
func (c *counter) Close() error          { return nil }

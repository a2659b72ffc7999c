package main

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// counterEnv makes the test binary a server that counts.
const counterEnv = "MCPPOOL_COUNTER"

// counterEntry is that server in a configuration file.
func counterEntry() entry {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return entry{"command": self, "env": map[string]string{counterEnv: "1", "GORACE": "atexit_sleep_ms=0"}}
}

// serveCounter is that server. Its tools are count, which tells how often it was called;
// notify, which reports progress twice; and sleep, which takes so many milliseconds.
func serveCounter() {
	s := mcpserver.NewMCPServer("counter", "1")
	var n atomic.Int64
	s.AddTool(mcp.NewTool("count"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strconv.FormatInt(n.Add(1), 10)), nil
	})
	s.AddTool(mcp.NewTool("notify"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 2 {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": i})
		}
		time.Sleep(200 * time.Millisecond) // they are sent by another goroutine than the answer
		return mcp.NewToolResultText("notified"), nil
	})
	s.AddTool(mcp.NewTool("sleep"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
			return mcp.NewToolResultText("slept"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	_ = mcpserver.ServeStdio(s)
	os.Exit(0)
}

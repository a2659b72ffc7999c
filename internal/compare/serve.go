package main

import (
	"context"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcppool/mcppool/internal/compare/internal/cheap"
)

// The servers, which are this program again.
const (
	cheapLegacy = cheap.Legacy
	cheapModern = cheap.Modern
	realServer  = "mcp-go" // made with mcp-go's server package
)

// serve runs the real server; the cheap ones ran before main.
func serve(kind string) {
	if kind != realServer {
		panic("bug: no such server: " + kind)
	}
	s := server.NewMCPServer("real", "1")
	echo := mcp.NewTool("echo", mcp.WithString("text", mcp.Required()))
	s.AddTool(echo, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	_ = server.ServeStdio(s) // its error is the end of stdin
	syscall.Exit(0)          // os.Exit sleeps for a second in a race build
}

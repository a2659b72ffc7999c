package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serve is the tool server: it keeps a shopping basket in memory, as a browser
// server keeps its page and a database server its transaction. It returns when
// its input ends.
func serve() error {
	var (
		mu     sync.Mutex // protects basket
		basket []string
	)
	s := server.NewMCPServer("basket", "1.0")

	s.AddTool(mcp.NewTool("add",
		mcp.WithDescription("Puts an item into the basket and says what is in it."),
		mcp.WithString("item", mcp.Required()),
	), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		item, err := req.RequireString("item")
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		mu.Lock()
		defer mu.Unlock()
		basket = append(basket, item)
		return mcp.NewToolResultText("basket: " + strings.Join(basket, ", ")), nil
	})

	s.AddTool(mcp.NewTool("pay",
		mcp.WithDescription("Takes a minute. Its first progress message is the server's process id."),
	), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
			err := s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": meta.ProgressToken,
				"progress":      0,
				"message":       strconv.Itoa(os.Getpid()),
			})
			if err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(time.Minute):
			return mcp.NewToolResultText("paid"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})

	return server.ServeStdio(s)
}

// kill ends the process of a server, as the system may at any time.
func kill(pid string) {
	if n, err := strconv.Atoi(pid); err == nil {
		if p, err := os.FindProcess(n); err == nil {
			_ = p.Kill()
			_ = p.Release()
		}
	}
}

package main

import (
	"context"
	"log"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serve is an MCP server over stdin and stdout, until the input ends.
func serve(name string) {
	s := server.NewMCPServer(name, "1")
	switch name {
	case "notes":
		addNotes(s)
	case "calc":
		s.AddTool(mcp.NewTool("add", mcp.WithDescription("Add two numbers."),
			mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())),
			func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				sum := req.GetFloat("a", 0) + req.GetFloat("b", 0)
				return mcp.NewToolResultText(strconv.FormatFloat(sum, 'f', -1, 64)), nil
			})
	}
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}

// addNotes adds tools that share a memory: that of this process.
func addNotes(s *server.MCPServer) {
	var (
		mu    sync.Mutex // protects notes: the server runs calls at the same time
		notes []string
	)
	s.AddTool(mcp.NewTool("write", mcp.WithDescription("Note something down."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := req.RequireString("text")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, text)
			return mcp.NewToolResultText("noted as number " + strconv.Itoa(len(notes))), nil
		})
	s.AddTool(mcp.NewTool("read", mcp.WithDescription("Read all notes.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(notes) == 0 {
				return mcp.NewToolResultText("nothing"), nil
			}
			return mcp.NewToolResultText(strings.Join(notes, ", ")), nil
		})
}

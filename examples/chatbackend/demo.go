package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serveDemo is an MCP server over stdin and stdout, until the input ends.
func serveDemo() {
	s := server.NewMCPServer("demo", "1")
	var (
		mu    sync.Mutex // protects notes
		notes []string
	)
	s.AddTool(mcp.NewTool("remember", mcp.WithDescription("Remember a text."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, req.GetString("text", ""))
			return mcp.NewToolResultText(fmt.Sprintf("%d remembered", len(notes))), nil
		})
	s.AddTool(mcp.NewTool("recall", mcp.WithDescription("Say what is remembered.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(notes) == 0 {
				return mcp.NewToolResultText("nothing"), nil
			}
			return mcp.NewToolResultText(strings.Join(notes, ", ")), nil
		})
	s.AddTool(mcp.NewTool("wait", mcp.WithDescription("Wait, with progress."), mcp.WithNumber("seconds", mcp.Required())),
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return wait(ctx, s, req)
		})
	s.AddTool(mcp.NewTool("draw", mcp.WithDescription("Draw a picture.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultImage("a gradient", picture(), "image/png"), nil
		})
	s.AddTool(mcp.NewTool("crash", mcp.WithDescription("End the server's process.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			os.Exit(3)
			return nil, nil
		})
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}

// wait reports its progress ten times a second.
func wait(ctx context.Context, s *server.MCPServer, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	total := req.GetFloat("seconds", 0)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for elapsed := 0.0; elapsed < total; elapsed = time.Since(begin).Seconds() {
		if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{ // the wait is what counts
				"progressToken": meta.ProgressToken, "progress": elapsed, "total": total, "message": "waiting",
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return mcp.NewToolResultText(fmt.Sprintf("waited %v s", total)), nil
}

// picture is a PNG in base64.
func picture() string {
	const size = 96
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			img.Set(x, y, color.RGBA{R: uint8(x * 2), G: uint8(y * 2), B: 160, A: 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic("bug: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

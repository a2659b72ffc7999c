package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// tool is what a server does with the arguments of a call.
type tool func(get func(name string) string) (string, error)

// serve is one of the servers. It returns when its input ends.
func serve(kind string) error {
	tools := map[string]map[string]tool{
		"filesystem": files(),
		"memory":     memory(),
		"shell":      shell(),
	}[kind]
	s := server.NewMCPServer(kind, "1.0")
	for name, f := range tools {
		s.AddTool(mcp.NewTool(name), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := f(func(name string) string { return req.GetString(name, "") })
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(text), nil
		})
	}
	return server.ServeStdio(s)
}

// files works in the server's own folder.
func files() map[string]tool {
	return map[string]tool{
		"where": func(func(string) string) (string, error) { return os.Getenv("TMPDIR"), nil },
		"write": func(get func(string) string) (string, error) {
			path := filepath.Join(os.Getenv("TMPDIR"), get("name"))
			return path, os.WriteFile(path, []byte(get("text")), 0o600)
		},
		"read": func(get func(string) string) (string, error) {
			data, err := os.ReadFile(filepath.Join(os.Getenv("TMPDIR"), get("name")))
			return string(data), err
		},
	}
}

// memory keeps notes for as long as it runs.
func memory() map[string]tool {
	var (
		mu    sync.Mutex // protects notes
		notes = map[string]string{}
	)
	return map[string]tool{
		"keep": func(get func(string) string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			notes[get("key")] = get("text")
			return "kept", nil
		},
		"recall": func(get func(string) string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if text, ok := notes[get("key")]; ok {
				return text, nil
			}
			return "", fmt.Errorf("nothing is known of %s", get("key"))
		},
	}
}

// shell runs whatever it is told.
func shell() map[string]tool {
	return map[string]tool{
		"run": func(get func(string) string) (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			out, err := exec.CommandContext(ctx, "sh", "-c", get("command")).CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("%s%w", out, err)
			}
			return string(out), nil
		},
		"dial": func(get func(string) string) (string, error) {
			conn, err := net.DialTimeout("tcp", get("address"), 5*time.Second)
			if err != nil {
				return "", err
			}
			return "connected", conn.Close()
		},
	}
}

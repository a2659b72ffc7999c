package mcppool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// modeEnv makes the test binary an MCP server, of the kind that it names.
const modeEnv = "MCPPOOL_TEST_SERVER"

// real is a server that runs as a child process: this binary again.
func real(t testing.TB, mode string, env ...string) mcppool.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	// A binary built with -race would sleep a second at its exit.
	srv := mcppool.Server{Command: self, Env: map[string]string{modeEnv: mode, "GORACE": "atexit_sleep_ms=0"}}
	for i := 0; i < len(env); i += 2 {
		srv.Env[env[i]] = env[i+1]
	}
	return srv
}

// serve is the process of such a server.
func serve(mode string) {
	switch mode {
	case "raw":
		serveRaw()
		os.Exit(0)
	case "leaky":
		serveLeaky()
		os.Exit(0)
	case "slow to start":
		d, _ := time.ParseDuration(os.Getenv("DELAY"))
		time.Sleep(d)
	case "asks for its roots":
		serveRoots()
		os.Exit(0)
	case "explains its slow start":
		fmt.Fprintln(os.Stderr, "\x1b[33mwaiting for the database")
		time.Sleep(time.Minute)
	case "deaf to the end of its input":
		signal.Ignore(syscall.SIGTERM)
	case "explains itself on stdout":
		fmt.Println("please set TOKEN, which is", os.Getenv("TOKEN"))
		os.Exit(2)
	case "exits at once":
		fmt.Fprintln(os.Stderr, "cannot start: token is", os.Getenv("TOKEN"))
		os.Exit(3)
	}
	if name := os.Getenv("PIDFILE"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Getpid())
			f.Close()
		}
	}
	if err := server.ServeStdio(newTestServer()); err != nil && mode != "deaf to the end of its input" {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if mode == "deaf to the end of its input" {
		select {}
	}
	os.Exit(0)
}

// newTestServer keeps what it is told, which is its state.
func newTestServer() *server.MCPServer {
	s := server.NewMCPServer("test", "1.0", server.WithToolCapabilities(true))
	var (
		mu    sync.Mutex
		notes []string
	)
	text := func(s string, err error) (*mcp.CallToolResult, error) {
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(s), nil
	}
	add := func(name string, f func(context.Context, mcp.CallToolRequest) (string, error)) {
		s.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(f(ctx, req))
		})
	}
	add("note", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, req.GetString("text", ""))
		return fmt.Sprint(notes), nil
	})
	var scope string
	add("effect", func(ctx context.Context, req mcp.CallToolRequest) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(notes) == 0 {
			scope = req.GetString("scope", "")
		}
		id := req.GetString("id", "")
		notes = append(notes, id)
		f, err := os.OpenFile(os.Getenv("EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(f, id)
		f.Close()
		time.Sleep(time.Duration(req.GetInt("ms", 0)) * time.Millisecond)
		if req.GetBool("die", false) {
			os.Exit(7)
		}
		return fmt.Sprintf("%s of scope %q, call %d", id, scope, len(notes)), err
	})
	add("pid", func(context.Context, mcp.CallToolRequest) (string, error) { return strconv.Itoa(os.Getpid()), nil })
	var hoard []byte
	add("grow", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		hoard = bytes.Repeat([]byte("x"), req.GetInt("bytes", 0)) // every page of it is used
		return strconv.Itoa(len(hoard)), nil
	})
	add("sleep", func(ctx context.Context, req mcp.CallToolRequest) (string, error) {
		select {
		case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
		case <-ctx.Done():
		}
		return "slept", nil
	})
	add("die", func(context.Context, mcp.CallToolRequest) (string, error) {
		fmt.Fprintln(os.Stderr, "dying with", os.Getenv("TOKEN"))
		os.Exit(7)
		return "", nil
	})
	add("getenv", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
		if req.GetString("name", "") == "*" {
			all, err := json.Marshal(os.Environ())
			return string(all), err
		}
		return os.Getenv(req.GetString("name", "")), nil
	})
	add("tmpdir", func(context.Context, mcp.CallToolRequest) (string, error) { return os.TempDir(), nil })
	add("getwd", func(context.Context, mcp.CallToolRequest) (string, error) { return os.Getwd() })
	add("rawargs", func(_ context.Context, req mcp.CallToolRequest) (string, error) {
		raw, err := json.Marshal(req.GetRawArguments())
		return string(raw), err
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such file"), nil
	})
	s.AddTool(mcp.NewTool("broken"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("broken with %s", os.Getenv("TOKEN"))
	})
	return s
}

// say calls a tool and gives its text.
func say(t testing.TB, p *mcppool.Pool, srv mcppool.Server, scope, tool string, args any) string {
	t.Helper()
	res, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Args: args, Scope: scope})
	require.NoError(t, err)
	require.False(t, res.IsError, "%v", res.Content)
	require.Len(t, res.Content, 1)
	return res.Content[0].(mcp.TextContent).Text
}

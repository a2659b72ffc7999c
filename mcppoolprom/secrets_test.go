package mcppoolprom_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolprom"
)

// serverEnv makes the test binary an MCP server.
const serverEnv = "MCPPOOLPROM_TEST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(serverEnv) {
	case "":
		os.Exit(m.Run())
	case "exits":
		fmt.Fprintln(os.Stderr, "cannot start with", os.Getenv("TOKEN"))
		os.Exit(3)
	}
	s := server.NewMCPServer(os.Getenv("TOKEN"), "1.0")
	for name, call := range map[string]func(context.Context) (*mcp.CallToolResult, error){
		"tell": func(context.Context) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(os.Getenv("TOKEN")), nil
		},
		"broken": func(context.Context) (*mcp.CallToolResult, error) {
			return nil, fmt.Errorf("broken with %s", os.Getenv("TOKEN"))
		},
		"sleep": func(ctx context.Context) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"die": func(context.Context) (*mcp.CallToolResult, error) {
			fmt.Fprintln(os.Stderr, "dying with", os.Getenv("TOKEN"))
			os.Exit(7)
			return nil, nil
		},
	} {
		s.AddTool(mcp.NewTool(name), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx)
		})
	}
	if server.ServeStdio(s) != nil {
		os.Exit(1)
	}
}

func TestNoSecretIsInTheMetrics(t *testing.T) {
	const mark = "s3cr3tm4rk" // in every secret, and nowhere else
	secret := func(name string) string { return mark + "-" + name }
	self, err := os.Executable()
	require.NoError(t, err)
	child := func(how string) mcppool.Server {
		return mcppool.Server{Command: self, Args: []string{"--token", secret("arg")}, Env: map[string]string{
			serverEnv: how, "TOKEN": secret("env"), "GORACE": "atexit_sleep_ms=0",
		}}
	}
	m := mcppoolprom.New(&mcppoolprom.Options{ServerName: func(label string) string { return label }})
	p, err := mcppool.New(&mcppool.Options{MaxSessions: 1, Trace: m.Trace(), Backoff: mcppool.Backoff{After: 1}})
	require.NoError(t, err)
	m.Attach(p)
	defer p.Close()
	call := func(ctx context.Context, srv mcppool.Server, tool, scope string) error {
		_, err := p.CallTool(ctx, srv, mcppool.Call{Tool: tool, Scope: scope, Args: map[string]string{"x": secret("argument")}})
		return err
	}
	srv := child("1")
	require.NoError(t, call(t.Context(), srv, "tell", secret("scope")))
	require.NoError(t, call(t.Context(), srv, "tell", secret("another scope")), "evicts the first")
	require.Error(t, call(t.Context(), srv, "broken", secret("scope")))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, call(ctx, srv, "sleep", secret("scope")), context.DeadlineExceeded)
	require.Error(t, call(t.Context(), srv, secret("tool"), secret("scope")))
	require.ErrorIs(t, call(t.Context(), srv, "die", secret("scope")), mcppool.ErrSessionLost)
	require.Error(t, call(t.Context(), child("exits"), "tell", secret("scope")))

	families, err := registry(t, m).Gather()
	require.NoError(t, err)
	told := fmt.Sprint(families)
	for _, outcome := range []string{"ok", "rpc error", "timeout", "lost", "crashed", "lru", "start failed", "open"} {
		require.Contains(t, told, `"`+outcome+`"`)
	}
	require.Contains(t, told, srv.String())
	require.NotContains(t, told, mark)
	require.Positive(t, sums(t, m)["mcppool_sent_bytes_total"])
	require.Positive(t, sums(t, m)["mcppool_received_bytes_total"])
}

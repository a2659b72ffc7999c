package cluster_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
)

const serverEnv = "CLUSTER_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is an MCP server on stdio that keeps notes, which are its state.
func serve() {
	s := server.NewMCPServer("notes", "1", server.WithToolCapabilities(true), server.WithElicitation())
	s.EnableSampling()
	var mu sync.Mutex
	var notes []string
	s.AddTool(mcp.NewTool("note"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, req.GetString("text", ""))
		return mcp.NewToolResultText(fmt.Sprint(notes)), nil
	})
	s.AddTool(mcp.NewTool("echo"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(req.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("sleep"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if name := req.GetString("mark", ""); name != "" {
			_ = os.WriteFile(name, nil, 0o600)
		}
		select {
		case <-ctx.Done():
			if name := req.GetString("cancelled", ""); name != "" {
				_ = os.WriteFile(name, nil, 0o600)
			}
		case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
		}
		return mcp.NewToolResultText("slept"), nil
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("no such thing")
	})
	s.AddTool(mcp.NewTool("progress"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": req.Params.Meta.ProgressToken, "progress": i + 1,
			})
		}
		time.Sleep(20 * time.Millisecond) // this server's answers may overtake its notifications
		return mcp.NewToolResultText("done"), nil
	})
	s.AddTool(mcp.NewTool("ask"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "your name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(fmt.Sprint(res.Action, res.Content)), nil
	})
	_ = server.ServeStdio(s)
}

// child is that server as a process.
func child(t testing.TB) mcppool.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return mcppool.Server{Name: "notes", Command: self, Env: map[string]string{serverEnv: "1", "GORACE": "atexit_sleep_ms=0"}}
}

var secret = []byte("0123456789abcdef")

// ttl of the tests.
const ttl = time.Second

// aged is a directory whose store is old, so that nothing has to wait for it.
type aged struct {
	cluster.Directory
	age time.Duration
}

func (a aged) Age(ctx context.Context) (time.Duration, error) {
	age, err := a.Directory.Age(ctx)
	return age + a.age, err
}

// replica is a node with what it is made of.
type replica struct {
	*cluster.Node
	pool *mcppool.Pool
}

func join(t testing.TB, store *memdir.Store, name string, change func(*cluster.Options, *mcppool.Options)) replica {
	t.Helper()
	return joinDir(t, aged{store.Open(), time.Hour}, name, change)
}

func joinDir(t testing.TB, dir cluster.Directory, name string, change func(*cluster.Options, *mcppool.Options)) replica {
	t.Helper()
	o, po := &cluster.Options{Name: name, Secret: secret, Listen: "127.0.0.1:0", TTL: ttl}, &mcppool.Options{MaxSessions: -1}
	if change != nil {
		change(o, po)
	}
	pool, err := mcppool.New(po)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n, err := cluster.Join(ctx, pool, dir, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, n.Close())
		require.NoError(t, pool.Close())
		require.NoError(t, dir.Close())
	})
	return replica{n, pool}
}

// note adds a note to a scope's state, and gives all of them.
func (r replica) note(t testing.TB, srv mcppool.Server, scope, text string) (string, mcppool.Served) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var served mcppool.Served
	res, err := r.CallTool(ctx, srv, mcppool.Call{Tool: "note", Args: map[string]any{"text": text}, Scope: scope, Served: &served})
	require.NoError(t, err)
	return textOf(res), served
}

func textOf(res *mcp.CallToolResult) string {
	c, _ := res.Content[0].(mcp.TextContent)
	return c.Text
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 10*time.Second, 2*time.Millisecond, what)
}

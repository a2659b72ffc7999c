package mcpconn_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/offering"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/mcppooltest"
)

func TestMain(m *testing.M) {
	mcppooltest.Serve()
	if offering.Main() || refusing() || streaming() || questioned() || inquiring() || oddly() {
		return
	}
	goleak.VerifyTestMain(m)
}

// soon is much longer than anything takes that is not waited for.
const soon = 5 * time.Second

// child is a server that runs as a child of the test, with env besides.
func child(t testing.TB, env ...string) mcpconn.Config {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return mcpconn.Config{
		Command:      self,
		Env:          append([]string{"GORACE=atexit_sleep_ms=0", "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}, env...),
		CloseTimeout: 2 * time.Second,
		Config: rpc.Config{
			ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
			OnPanic:    func(v any, _ []byte) { panic(v) },
		},
	}
}

// full is the server that offers everything.
func full(t testing.TB, era rpc.Era) mcpconn.Config {
	t.Helper()
	name, value := offering.Env()
	cfg := child(t, name+"="+value)
	cfg.Era = era
	return cfg
}

// dial connects, and closes at the end of the test.
func dial(t testing.TB, cfg mcpconn.Config) *mcpconn.Conn {
	t.Helper()
	c, err := mcpconn.Dial(within(t, 4*soon), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// kill kills the process of a child.
func kill(t testing.TB, c *mcpconn.Conn) {
	t.Helper()
	p, err := os.FindProcess(c.Pid())
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Release())
}

// say calls a tool and returns the text of its result.
func say(t testing.TB, c *mcpconn.Conn, tool, args string) string {
	t.Helper()
	res, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: tool, Args: json.RawMessage(args)})
	require.NoError(t, err)
	require.Len(t, res.Content, 1)
	return res.Content[0].(mcp.TextContent).Text
}

// bothEras is that server in each era.
func bothEras(t testing.TB) map[string]mcpconn.Config {
	t.Helper()
	all := make(map[string]mcpconn.Config)
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		all[string(era)] = full(t, era)
	}
	return all
}

// refusing runs a server that answers with an error all but the handshake of
// the era that its environment names, if it names one.
func refusing() bool {
	era := os.Getenv("MCPCONN_REFUSING")
	if era == "" {
		return false
	}
	handshake := map[string]string{
		"legacy": `{"protocolVersion":"2025-06-18","serverInfo":{"name":"r","version":"1"},"capabilities":{}}`,
		"modern": `{"supportedVersions":["2026-07-28"],"capabilities":{}}`,
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for done := false; ; {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&req) != nil {
			return true
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		switch {
		case req.ID == nil:
			continue
		case !done && handshake[era] != "" && (era == "modern" || req.Method == "initialize"):
			done = true
			answer["result"] = json.RawMessage(handshake[era])
		default:
			answer["error"] = map[string]any{"code": -32050, "message": "no " + req.Method, "data": []int{1, 2}}
		}
		_ = out.Encode(answer)
	}
}

func refuses(t testing.TB, era rpc.Era) mcpconn.Config {
	t.Helper()
	cfg := child(t, "MCPCONN_REFUSING="+string(era))
	cfg.Era = era
	return cfg
}

func hostileServer(t testing.TB, traits ...string) mcpconn.Config {
	t.Helper()
	cfg := child(t)
	for name, value := range mcppooltest.Env(traits...) {
		cfg.Env = append(cfg.Env, name+"="+value)
	}
	return cfg
}

// streaming runs a modern server with streams of its own mind: for the resource
// "none" it acknowledges nothing of what is asked, and "short" it ends at once.
func streaming() bool {
	if os.Getenv("MCPCONN_STREAMING") == "" {
		return false
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var req struct {
			ID     json.RawMessage
			Params struct {
				Notifications mcp.SubscriptionFilter
			}
		}
		if in.Decode(&req) != nil {
			return true
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": map[string]any{"supportedVersions": []string{"2026-07-28"}}}
		if uris := req.Params.Notifications.ResourceSubscriptions; len(uris) == 1 {
			granted := req.Params.Notifications
			if uris[0] == "none" {
				granted = mcp.SubscriptionFilter{}
			}
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "method": mcp.MethodNotificationSubscriptionsAcknowledged, "params": map[string]any{
				"_meta": map[string]any{mcp.MetaKeySubscriptionID: string(req.ID)}, "notifications": granted,
			}})
			if uris[0] != "short" {
				continue
			}
		}
		if req.ID != nil {
			_ = out.Encode(answer)
		}
	}
}

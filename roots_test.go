package mcppool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// serveRoots is a server that asks for its roots once it is initialized, and again when
// they have changed. Its tool says which it knows.
func serveRoots() {
	roots := "none"
	ask := func(id int) { fmt.Printf(`{"jsonrpc":"2.0","id":"roots %d","method":"roots/list"}`+"\n", id) }
	for in, asked := bufio.NewScanner(os.Stdin), 0; in.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
			Result mcp.ListRootsResult
		}
		if json.Unmarshal(in.Bytes(), &msg) != nil {
			continue
		}
		result := "{}"
		switch msg.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"roots","version":"1"}}`
		case "notifications/initialized", mcp.MethodNotificationRootsListChanged:
			asked++
			ask(asked)
			continue
		case "": // the answer
			roots = fmt.Sprint(asked, " ", msg.Result.Roots[0].URI)
			continue
		case "tools/call":
			text, _ := json.Marshal(roots)
			result = `{"content":[{"type":"text","text":` + string(text) + `}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", msg.ID, result)
	}
}

func TestASpareLearnsTheRootsOfTheScopeThatItIsHandedTo(t *testing.T) {
	asked := make(chan string, 8)
	p := realPool(t, &mcppool.Options{Handlers: mcppool.Handlers{
		Roots: func(_ context.Context, from mcppool.Origin) ([]mcp.Root, error) {
			asked <- from.Scope
			return []mcp.Root{{URI: "file:///" + from.Scope}}, nil
		},
	}})
	srv := real(t, "asks for its roots")
	srv.Protocol = mcppool.ProtocolLegacy
	require.NoError(t, p.Prewarm(t.Context(), srv, 1))
	require.Empty(t, <-asked, "it asked while it was nobody's")
	var spare string
	for s := range p.Sessions() {
		spare = s.ID
	}
	knows := func(scope, want string) {
		require.Eventually(t, func() bool { return say(t, p, srv, scope, "roots", nil) == want }, 10*time.Second, time.Millisecond)
	}
	knows("alice", "2 file:///alice")
	for s := range p.SessionsOf("alice") {
		require.Equal(t, spare, s.ID)
	}
	knows("bob", "1 file:///bob")
	require.Equal(t, "2 file:///alice", say(t, p, srv, "alice", "roots", nil), "it is told once")

	require.NoError(t, p.Do(t.Context(), srv, mcppool.Borrow{Scope: "bob"}, func(ctx context.Context, s *mcppool.Session) error {
		return s.Notify(ctx, mcp.MethodNotificationRootsListChanged, nil)
	}))
	knows("bob", "2 file:///bob")
}

func TestAnAnswerForNobodyNeverComesAfterThatForTheScope(t *testing.T) {
	asked, release := make(chan string, 8), make(chan struct{})
	p := realPool(t, &mcppool.Options{Handlers: mcppool.Handlers{
		Roots: func(_ context.Context, from mcppool.Origin) ([]mcp.Root, error) {
			asked <- from.Scope
			if from.Scope == "" {
				<-release
			}
			return []mcp.Root{{URI: "file:///" + from.Scope}}, nil
		},
	}})
	srv := real(t, "asks for its roots")
	srv.Protocol = mcppool.ProtocolLegacy
	require.NoError(t, p.Prewarm(t.Context(), srv, 1))
	require.Empty(t, <-asked)
	require.Equal(t, "none", say(t, p, srv, "alice", "roots", nil))
	require.Equal(t, "none", say(t, p, srv, "alice", "roots", nil), "the server has asked again by now")
	require.Empty(t, asked, "the first answer isn't out yet")
	close(release)
	require.Eventually(t, func() bool { return say(t, p, srv, "alice", "roots", nil) == "2 file:///alice" }, 10*time.Second, time.Millisecond)
}

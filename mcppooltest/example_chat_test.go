package mcppooltest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

// backend is the program under test: a chat's messages are notes that an MCP server keeps
// for it, and what it hears is all of them.
type backend struct {
	pool  *mcppool.Pool
	notes mcppool.Server
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	res, err := b.pool.CallTool(ctx, b.notes, mcppool.Call{
		Tool:  "note",
		Args:  map[string]any{"text": r.FormValue("text")},
		Scope: mcppool.Scope("notes", r.FormValue("chat")),
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "that took too long", http.StatusGatewayTimeout)
	case errors.Is(err, mcppool.ErrSessionLost):
		http.Error(w, "the notes of this chat are lost", http.StatusBadGateway)
	case err != nil:
		http.Error(w, "please try again", http.StatusServiceUnavailable)
	default:
		for _, c := range res.Content {
			fmt.Fprint(w, c.(mcp.TextContent).Text)
		}
	}
}

// post is what a chat's user sees of a message.
func (b *backend) post(chat, text string) string {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?chat="+chat+"&text="+text, nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

// keeper makes fakes of the server, each session of which has notes of its own.
func keeper() *mcppooltest.Fakes {
	return &mcppooltest.Fakes{Connect: func(_ context.Context, c *mcppooltest.Conn) error {
		var notes []string
		c.Tools = mcppooltest.Tools{"note": func(ctx context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
			switch text := call.GetString("text", ""); text {
			case "crash":
				return mcppooltest.Die()(ctx, call)
			case "hang":
				return mcppooltest.Delay(time.Hour, mcppooltest.Text("at last"))(ctx, call)
			default:
				notes = append(notes, text)
				return mcp.NewToolResultText(strings.Join(notes, ", ")), nil
			}
		}}
		return nil
	}}
}

// A small chat backend, and what its users see when its server behaves and when it
// doesn't. In a test of yours t is the test's.
func Example_chatBackend() {
	t, end := exampleT()
	defer end()

	fakes := keeper()
	b := &backend{
		pool:  mcppooltest.New(t, fakes, nil),
		notes: mcppool.Server{Name: "notes", Command: "notes-server"},
	}
	fmt.Println(b.post("anna", "milk"))
	fmt.Println(b.post("bert", "rope"))
	fmt.Println(b.post("anna", "eggs"))
	fmt.Println(b.post("anna", "crash"))
	fmt.Println(b.post("anna", "bread"))
	for _, call := range fakes.Calls() {
		fmt.Println(call)
	}
	// Output:
	// 200 milk
	// 200 rope
	// 200 milk, eggs
	// 502 the notes of this chat are lost
	// 200 bread
	// notes#1: note {"text":"milk"}
	// notes#2: note {"text":"rope"}
	// notes#1: note {"text":"eggs"}
	// notes#1: note {"text":"crash"}
	// notes#3: note {"text":"bread"}
}

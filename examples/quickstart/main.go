// Quickstart shows what a pool of MCP sessions does, with real server processes:
//
//	go run ./examples/quickstart
//
// Nothing needs installing: the server is this program again, started by the
// pool with an environment variable set. What it serves is in server.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// serveEnv makes this program the server.
const serveEnv = "QUICKSTART_SERVE"

func main() {
	run := func() error { return tour(os.Stdout) }
	if os.Getenv(serveEnv) != "" {
		run = serve
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tour uses a pool as a program does: New once, CallTool for each call of the
// model, Close at the end.
func tour(out io.Writer) error {
	ctx := context.Background()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	srv := mcppool.Server{Command: self, Env: map[string]string{serveEnv: "1"}}
	pool, err := mcppool.New(nil)
	if err != nil {
		return err
	}

	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	add := func(chat, item string) {
		res, err := pool.CallTool(ctx, srv, mcppool.Call{
			Tool:  "add",
			Args:  map[string]any{"item": item},
			Scope: mcppool.Scope("shop", chat), // "" outside of a chat
		})
		say("   %-7s  add %-8s  %s", label(chat), item, outcome(res, err))
	}

	say("1. Each chat has a server process of its own, which keeps its basket.")
	add("A", "apples")
	add("B", "bread")
	add("A", "pears")
	add("B", "butter")
	add("A", "plums")

	say("\n2. A call without a chat has a process to itself, and nothing is kept.")
	add("", "wine")
	add("", "cheese")

	say("\n3. The server of chat A is killed during a call. The pool doesn't send the")
	say("   call again, as it may have had its effect. The next call starts afresh.")
	res, err := pool.CallTool(ctx, srv, mcppool.Call{
		Tool:       "pay",
		Scope:      mcppool.Scope("shop", "A"),
		OnProgress: func(n mcp.ProgressNotification) { kill(n.Params.Message) },
	})
	say("   chat A   pay           %s", outcome(res, err))
	add("A", "cherries")
	add("B", "honey")

	say("\n4. Chat B's call would take a minute; its deadline of 0.2 s is kept. The")
	say("   process that may be stuck in it is replaced.")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	res, err = pool.CallTool(short, srv, mcppool.Call{Tool: "pay", Scope: mcppool.Scope("shop", "B")})
	say("   chat B   pay           %s after %.1f s", outcome(res, err), time.Since(began).Seconds())
	add("B", "eggs")

	say("\n5. When Close returns, no process is left.")
	kept := pool.Stats().Kept
	err = pool.Close()
	end := pool.Stats()
	say("   %d calls, %d processes started; kept until Close: %d, left now: %d", end.Calls, end.Connects, kept, end.Open)
	return err
}

func label(chat string) string {
	if chat == "" {
		return "no chat"
	}
	return "chat " + chat
}

// outcome tells the ends of a call apart, as a program may want to.
func outcome(res *mcp.CallToolResult, err error) string {
	var lost *mcppool.SessionLostError
	switch {
	case errors.As(err, &lost):
		return fmt.Sprintf("error: session lost, %s; safe to retry: %t", lost.Exit, mcppool.SafeToRetry(err))
	case errors.Is(err, context.DeadlineExceeded):
		return "error: deadline exceeded"
	case err != nil:
		return "error: " + err.Error()
	default:
		return res.Content[0].(mcp.TextContent).Text
	}
}

// Debugpage shows the live page of a pool at work:
//
//	go run ./examples/debugpage
//
// It prints a URL to open in a browser. Several chats call tools at random, of
// servers that are real child processes: this program again, with an environment
// variable set. Some calls are slow, some fail, and now and then a server crashes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// serveEnv makes this program a server, of the name that is its value.
const serveEnv = "DEBUGPAGE_SERVE"

func main() {
	if name := os.Getenv(serveEnv); name != "" {
		if err := serve(name); err != nil {
			os.Exit(1)
		}
		return
	}
	addr := flag.String("addr", "127.0.0.1:8322", "where to listen; there is no login, so keep it local")
	chats := flag.Int("chats", 8, "how many chats call tools")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ln, err := net.Listen("tcp", *addr)
	if err == nil {
		fmt.Printf("the pool is at http://%s/debug/mcppool; end with Ctrl-C\n", ln.Addr())
		err = run(ctx, ln, *chats)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves the page and lets the chats call until ctx ends.
func run(ctx context.Context, ln net.Listener, chats int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	limits := mcppool.Limits{MaxProcesses: chats + 4, MaxStarting: 3, MaxPerScope: 2, MaxWaiting: 100}
	page := pooldebug.New(&pooldebug.Options{
		Title:       "A pool at work",
		Window:      2 * time.Minute,
		Actions:     true, // whoever opens the page may close sessions
		MaxSessions: chats + 2,
	})
	pool, err := mcppool.New(&mcppool.Options{
		MaxSessions: chats + 2,
		IdleTimeout: 20 * time.Second,
		Limits:      limits,
		Backoff:     mcppool.Backoff{Failures: 2, Initial: 5 * time.Second, Max: 20 * time.Second},
		ShowScopes:  true, // here they are no secret
		Trace:       page.Trace(),
	})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer pool.Close()
	page.Attach(pool)

	mux := http.NewServeMux()
	mux.Handle("/debug/mcppool", page)
	// An open page's request lasts until its BaseContext ends.
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()

	var wg sync.WaitGroup
	for chat := range chats {
		wg.Go(func() { talk(ctx, pool, "chat "+strconv.Itoa(chat+1)) })
	}
	select {
	case err = <-served:
	case <-ctx.Done():
		_ = srv.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = end
		}
	}
	stop() // the chats
	wg.Wait()
	return err
}

// talk calls tools as the agent loop of a chat does, until ctx ends.
func talk(ctx context.Context, pool *mcppool.Pool, chat string) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	servers := []mcppool.Server{
		{Command: self, Env: map[string]string{serveEnv: "browser"}, Policy: mcppool.Policy{Spares: 1}},
		{Command: self, Env: map[string]string{serveEnv: "notes"}},
	}
	broken := mcppool.Server{Command: self, Env: map[string]string{serveEnv: "broken"}}
	for ctx.Err() == nil {
		srv := servers[rand.IntN(len(servers))]
		call := mcppool.Call{Tool: "work", Args: map[string]any{"ms": rand.IntN(400)}, Scope: mcppool.Scope("demo", chat)}
		limit := 5 * time.Second
		switch n := rand.IntN(100); {
		case n < 4:
			call.Tool = "fail"
		case n < 6:
			call.Tool = "crash"
		case n < 12:
			call.Args = map[string]any{"ms": 1000 + rand.IntN(3000)}
			limit = 3 * time.Second
		case n < 16:
			call.Scope = "" // one-shot
		case n < 18:
			srv = broken
		}
		attempt, cancel := context.WithTimeout(ctx, limit)
		_, err := pool.CallTool(attempt, srv, call)
		cancel()
		if errors.Is(err, mcppool.ErrClosed) {
			return
		}
		pause := time.Duration(rand.IntN(2000)) * time.Millisecond
		if rand.IntN(20) == 0 {
			pause = time.Duration(10+rand.IntN(20)) * time.Second // the user reads
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// serve is a server with tools that work, fail and crash.
func serve(name string) error {
	if name == "broken" {
		fmt.Fprintln(os.Stderr, "broken: the configuration is missing")
		return errors.New("broken")
	}
	fmt.Fprintln(os.Stderr, name+": ready")
	s := server.NewMCPServer(name, "1.0")
	s.AddTool(mcp.NewTool("work", mcp.WithNumber("ms")), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
			return mcp.NewToolResultText("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such element"), nil
	})
	s.AddTool(mcp.NewTool("crash"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, name+": out of memory")
		os.Exit(3)
		return nil, nil
	})
	return server.ServeStdio(s)
}

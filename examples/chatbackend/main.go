// Chatbackend is a small chat server: several chats at once, each with the tools
// and the state of its own MCP servers, progress streamed by server-sent events,
// a button that stops a turn, and a page to try it all in a browser.
//
//	go run ./examples/chatbackend
//	go run ./examples/chatbackend -config ~/.cursor/mcp.json
//
// The model is a script that takes the user's words as commands, so that
// nothing but this program is needed. Without -config it brings its own MCP
// server, which is this program again as a child process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve-demo" {
		serveDemo()
		return
	}
	addr := flag.String("addr", "127.0.0.1:8321", "where to listen; there is no login, so keep it local")
	config := flag.String("config", "", "a configuration file of Claude, Cursor, VS Code, ... instead of the demo server; it is watched")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *config); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, config string) error {
	page := pooldebug.New(&pooldebug.Options{Title: "chatbackend", Actions: true})
	pool, err := mcppool.New(&mcppool.Options{Logger: slog.Default(), Trace: page.Trace()})
	if err != nil {
		return err
	}
	defer pool.Close()
	page.Attach(pool)
	catalog, err := demoCatalog()
	if config != "" {
		var watched *mcpservers.WatchedCatalog
		watched, err = mcpservers.WatchCatalog(pool, &mcpservers.CatalogOptions{OnReload: logReload}, config)
		if err == nil {
			defer watched.Close()
			catalog = watched
		}
	}
	if err != nil {
		return err
	}
	b, err := newBackend(pool, catalog)
	if err != nil {
		return err
	}
	b.debug = page
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s, with the sessions on /debug/pool/\n", ln.Addr())
	return serve(ctx, ln, b, 10*time.Second)
}

func logReload(r mcpservers.Reload) {
	for _, w := range r.Config.Warnings {
		slog.Warn("configuration", slog.String("warning", w.String()))
	}
	for _, e := range r.Config.Entries {
		if e.Err != nil {
			slog.Error("server can't be used", slog.Any("err", e.Err))
		}
	}
	for _, err := range r.Config.Errs {
		slog.Error("configuration is broken, what it said last stays", slog.Any("err", err))
	}
	slog.Info("configuration read", slog.Any("closed", r.Closed))
}

// demoCatalog has one server: this program.
func demoCatalog() (toolbox.Catalog, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return toolbox.NewStaticCatalog(toolbox.Entry{
		ID: "demo", Server: mcppool.Server{Command: self, Args: []string{"serve-demo"}},
	})
}

// serve runs the backend until ctx ends. Then turns under way get the time of
// grace to finish, after which they are stopped. When serve returns, no turn
// runs and no MCP server is left.
func serve(ctx context.Context, ln net.Listener, b *backend, grace time.Duration) error {
	turns, stopTurns := context.WithCancel(context.Background())
	defer stopTurns()
	srv := &http.Server{
		Handler:           b.handler(),
		BaseContext:       func(net.Listener) context.Context { return turns },
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := srv.Shutdown(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		stopTurns()
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err = srv.Shutdown(last); err != nil {
			err = errors.Join(err, srv.Close())
		}
	}
	if end := <-failed; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return errors.Join(err, b.box.Close(), b.pool.Close())
}

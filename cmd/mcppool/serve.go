package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolprom"
	"github.com/mcppool/mcppool/pooldebug"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

const serveUsage = `usage: mcppool serve [flags] FILE...

Serves the servers of configuration files of MCP hosts behind one endpoint of
streamable HTTP, /mcp: each client session has sessions of its own with them, which end
with it. Beside it are /debug/mcppool, a live page; /metrics, for Prometheus; and
/healthz. SIGHUP reads the files again, which are followed anyway; SIGTERM lets calls
finish for as long as -drain says.

Without a token it listens on loopback addresses alone.

`

// tokenEnv has the token that clients show, unless -token-file names a file with it.
const tokenEnv = "MCPPOOL_TOKEN"

// serveOptions are what the command line of serve says.
type serveOptions struct {
	options
	listen    string
	token     string
	tokenFile string
	header    string // that names the conversation; empty: the session does
	idle      time.Duration
	drain     time.Duration
	limits    mcppool.Limits
	spares    int
	verbose   bool
}

func parseServe(args []string, stderr io.Writer) (*serveOptions, error) {
	o := new(serveOptions)
	set := flag.NewFlagSet("serve", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprint(stderr, serveUsage)
		set.PrintDefaults()
	}
	set.StringVar(&o.listen, "listen", "127.0.0.1:8808", "the `address` to listen on")
	set.StringVar(&o.tokenFile, "token-file", "", "a `file` with the token that clients show as \"Authorization: Bearer ...\"; default: "+tokenEnv+", and without that none")
	set.StringVar(&o.header, "conversation-header", "", "the `name` of a header that names the conversation whose state a request meets; default: the client's session does")
	set.DurationVar(&o.idle, "idle", 30*time.Minute, "how long a client's session is kept after its last request")
	set.DurationVar(&o.drain, "drain", 30*time.Second, "how long calls may go on at the end")
	set.IntVar(&o.limits.MaxProcesses, "max-processes", 64, "how many servers run at a time; 0 is no limit")
	set.IntVar(&o.limits.MaxPerScope, "max-per-conversation", 0, "how many of them for one conversation; 0 is no limit")
	set.IntVar(&o.spares, "spares", 0, "how many started processes of each server are kept in hand")
	set.BoolVar(&o.verbose, "v", false, "log every call")
	o.hostFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	o.files = set.Args()
	if err := o.complete(); err != nil {
		fmt.Fprintln(stderr, "mcppool:", err)
		return nil, err
	}
	return o, nil
}

// complete reads the token, and refuses what makes no sense.
func (o *serveOptions) complete() error {
	o.token = os.Getenv(tokenEnv)
	if o.tokenFile != "" {
		data, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return fmt.Errorf("-token-file: %w", err)
		}
		o.token = strings.TrimSpace(string(data))
		if o.token == "" {
			return errors.New("-token-file: the file is empty")
		}
	}
	host, _, err := net.SplitHostPort(o.listen)
	switch {
	case len(o.files) == 0:
		return errors.New("serve: no file is named")
	case err != nil:
		return fmt.Errorf("-listen: %w", err)
	case o.token == "" && !isLoopback(host):
		return errors.New("-listen: an address that others reach needs a token: set " + tokenEnv + " or -token-file")
	case o.idle <= 0:
		return errors.New("-idle: isn't positive")
	}
	return nil
}

// serve is the command. It returns the exit status.
func serve(ctx context.Context, o *serveOptions, stderr io.Writer) int {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if err := o.run(ctx, log); err != nil {
		fmt.Fprintln(stderr, "mcppool:", err)
		return statusUsage
	}
	return statusFine
}

// run serves until ctx ends.
func (o *serveOptions) run(ctx context.Context, log *slog.Logger) error {
	page := pooldebug.New(&pooldebug.Options{Title: "mcppool serve"})
	metrics := mcppoolprom.New(nil)
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	talk := newTalk()
	pool, err := mcppool.New(&mcppool.Options{
		Logger: log, Trace: mcppool.MergeTraces(page.Trace(), metrics.Trace()), Limits: o.limits, MaxSessions: -1,
		Handlers: talk.router.PoolHandlers(),
	})
	if err != nil {
		return err
	}
	page.Attach(pool)
	metrics.Attach(pool)
	defer func() { _ = pool.Close() }()

	catalog, err := mcpservers.WatchCatalog(pool, o.catalogOptions(log), o.files...)
	if err != nil {
		return err
	}
	defer catalog.Close()
	g, err := newGateway(pool, catalog, talk, o, log)
	if err != nil {
		return err
	}
	defer g.close()

	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	log.Info("serving", slog.String("url", "http://"+l.Addr().String()+"/mcp"))
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	listening, stopListening := context.WithCancel(context.Background())
	defer stopListening()
	web := &http.Server{Handler: o.guard(streams(listening, handlers(g, page, registry))), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	for {
		select {
		case <-reload:
			catalog.Reload()
		case err := <-served:
			return err
		case <-ctx.Done():
			log.Info("ending")
			stopListening()
			return o.end(log, web, pool, served)
		}
	}
}

// end lets calls finish, for as long as -drain says.
func (o *serveOptions) end(log *slog.Logger, web *http.Server, pool *mcppool.Pool, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.drain)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		log.Warn("calls are interrupted", slog.String("err", err.Error()))
		_ = web.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if err := pool.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// catalogOptions say how the files are read, and what is said of them.
func (o *serveOptions) catalogOptions(log *slog.Logger) *mcpservers.CatalogOptions {
	return &mcpservers.CatalogOptions{
		Options: &o.reading,
		Edit:    o.edit,
		OnReload: func(r mcpservers.Reload) {
			for _, w := range r.Config.Warnings {
				log.Warn(w.String())
			}
			for _, e := range r.Config.Entries {
				if e.Err != nil {
					log.Warn(e.Err.Error())
				}
			}
			names := make([]string, 0, len(r.Config.Entries))
			for _, e := range r.Config.Entries {
				names = append(names, e.Name)
			}
			slices.Sort(names)
			log.Info("configuration", slog.String("servers", strings.Join(names, " ")))
		},
	}
}

// edit says how the sessions of a server are kept, which files have no words for.
func (o *serveOptions) edit(e *toolbox.Entry) {
	switch {
	case hasProfile(e.Server.Args):
		e.Server.Policy.Mode = mcppool.Exclusive
	case !e.Server.IsHTTP():
		e.Server.Policy.Spares = o.spares
	}
}

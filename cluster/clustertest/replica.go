// Package clustertest breaks clusters whose replicas are processes, and looks whether the
// promises of package cluster hold, over whichever directory it is given. It is for Unix.
package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
)

// The environment of processes that a test starts: this binary again.
const (
	replicaEnv = "CLUSTERTEST_REPLICA" // what follows, as JSON
	ledgerEnv  = "CLUSTERTEST_LEDGER"  // a server that writes its executions there
)

// config is what a replica is told.
type config struct {
	Name, URL string
	TTL       time.Duration
}

// Main does the work of a process that a test started, and reports whether it was one. TestMain calls
// it first, and returns when it says true. Open connects to the directory at a url that
// the test got.
func Main(open func(url string) (cluster.Directory, error)) bool {
	switch {
	case os.Getenv(ledgerEnv) != "":
		serve(os.Getenv(ledgerEnv))
	case os.Getenv(replicaEnv) != "":
		if err := replicate(open); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	default:
		return false
	}
	return true
}

// serve is an MCP server that counts, which is its state, and writes each execution to the ledger.
func serve(ledger string) {
	s := server.NewMCPServer("counter", "1", server.WithToolCapabilities(true))
	var mu sync.Mutex
	count := 0
	s.AddTool(mcp.NewTool("count"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		count++
		n := count
		mu.Unlock()
		f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintln(f, req.GetString("id", "?"))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
		case <-ctx.Done():
		}
		return mcp.NewToolResultText(fmt.Sprint(n)), nil
	})
	_ = server.ServeStdio(s) // until its input ends
}

// replicate is a replica: it prints its address, does what it is asked over HTTP, and ends with its
// input.
func replicate(open func(string) (cluster.Directory, error)) error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(replicaEnv)), &c); err != nil {
		return err
	}
	dir, err := open(c.URL)
	if err != nil {
		return err
	}
	pool, err := mcppool.New(&mcppool.Options{MaxSessions: -1, CloseTimeout: time.Second})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	node, err := cluster.Join(ctx, pool, dir, &cluster.Options{
		Name: c.Name, Secret: []byte("a secret of the tests"), Listen: "127.0.0.1:0", TTL: c.TTL,
	})
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, control(node)) }() //nolint:gosec // ends with the process
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(node.Close(), pool.Close(), dir.Close())
}

// Order is what a replica is asked, and Outcome what it answers.
type order struct {
	Do      string
	Scope   string
	ID      string
	MS      int
	Ledger  string
	Timeout time.Duration
}

type outcome struct {
	Text    string
	Served  mcppool.Served
	Error   string
	Lost    bool // ErrOwnerLost
	Closed  bool // ErrServerClosed
	NotSent bool
	Counts  cluster.Counts
}

// Server is what scopes run: this binary as a server with that ledger.
func (o *order) server() mcppool.Server {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a test's own program
	}
	return mcppool.Server{Name: "counter", Command: self, Env: map[string]string{ledgerEnv: o.Ledger, "GORACE": "atexit_sleep_ms=0"}}
}

// control serves orders.
func control(n *cluster.Node) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), o.Timeout)
		defer cancel()
		var out outcome
		var err error
		switch o.Do {
		case "call":
			var res *mcp.CallToolResult
			res, err = n.CallTool(ctx, o.server(), mcppool.Call{
				Tool: "count", Scope: o.Scope, Args: map[string]any{"id": o.ID, "ms": o.MS}, Served: &out.Served,
			})
			if err == nil {
				out.Text = text(res)
			}
		case "close":
			err = n.CloseServerEverywhere(ctx, o.server())
		case "drain":
			err = n.Drain(ctx)
		}
		if err != nil {
			out.Error, out.NotSent = err.Error(), mcppool.SafeToRetry(err)
			out.Lost, out.Closed = errors.Is(err, cluster.ErrOwnerLost), errors.Is(err, mcppool.ErrServerClosed)
		}
		out.Counts = n.Counts()
		_ = json.NewEncoder(w).Encode(out)
	})
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

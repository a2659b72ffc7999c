//go:build linux

package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// grace is how long the servers have to end by themselves.
const grace = 2 * time.Second

// site is the address of the pages that browsers are sent to.
var site string

// check is something that is tried with each server.
type check struct {
	name string
	gate bool // in the gate, too
	run  func(*bench)
}

var checks = []check{
	{"keeps its state and tells no other scope", true, checkState},
	{"offers", true, checkOffers},
	{"eras", false, checkEras},
	{"deadline", false, checkDeadline},
	{"cancel", false, checkCancel},
	{"killed between calls", false, checkKilledBetween},
	{"killed during a call", true, checkKilledDuring},
	{"11 MiB of arguments", false, checkBig},
	{"closed while busy", true, checkBusyClose},
	{"many sessions at once", true, checkMany},
	{"npx", false, checkNpx},
	{"a wrapper that is killed alone", false, checkWrapper},
}

// TestServers tries each server, and compares the table of docs/servers.md with what came out.
func TestServers(t *testing.T) {
	if size(t) == "" {
		t.Skip("set MCPPOOL_INTEROP to short or full")
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>t</title><h1>" + html.EscapeString(strings.Trim(r.URL.Path, "/")) + "</h1>"))
	}))
	defer pages.Close()
	defer pages.CloseClientConnections()
	site = pages.URL
	for _, s := range subjects() {
		if size(t) == "short" && !s.gate {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			found := &facts{}
			b := &bench{subject: s, found: found, command: start(t, s)}
			for _, c := range checks {
				if size(t) == "short" && !c.gate {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					inner := *b
					inner.T = t
					inner.scratch = shortDir(t)
					c.run(&inner)
				})
			}
			if size(t) == "full" && !t.Failed() {
				recordRow(t, s, found)
			}
		})
	}
	if size(t) == "full" && *update {
		writeTable(t)
	}
}

// facts are what came out of trying a server.
type facts struct {
	eras  []string // the revisions that it speaks, pinned to each era
	tools int
	big   string // what it does with 11 MiB of arguments
	ends  string // how it ends by itself
	said  []string
	many  int
}

// bench is a server in a test.
type bench struct {
	*testing.T
	*subject
	found   *facts
	command []string
	scratch string
	npx     bool
}

// shortDir is a folder whose path leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "interop") //nolint:usetesting // t.TempDir has the test's name in it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// start installs a server and returns its command line, without arguments of its own.
func start(t *testing.T, s *subject) []string {
	t.Helper()
	if strings.HasPrefix(s.name, "playwright") || s.name == "chrome-devtools" {
		program(t, "chromium")
	}
	if s.gop != "" {
		return []string{goBin(t, s.gop)}
	}
	modules := filepath.Join(npmDir(t), "node_modules")
	if !strings.Contains(s.bin, "/") {
		return []string{filepath.Join(modules, ".bin", s.bin)}
	}
	path := filepath.Join(modules, s.bin)
	require.NoError(t, os.Chmod(path, 0o700)) // some forget it
	return []string{path}
}

// server is the configuration of the server as the table has it.
func (b *bench) server() mcppool.Server {
	command, args := b.command[0], b.args
	if b.npx {
		prefix := filepath.Dir(filepath.Dir(filepath.Dir(command)))
		args = append([]string{"--prefix", prefix, "--offline", "--no", "--", b.bin}, args...)
		command = "npx"
	}
	srv := mcppool.Server{Name: b.name, Command: command, Args: args, Env: b.env, PrivateDir: b.dir, Policy: b.policy}
	if b.cwd {
		srv.Dir = "${mcppool.dir}"
	}
	return srv
}

// pool is a pool whose close leaves nothing.
func (b *bench) pool(opts mcppool.Options) *mcppool.Pool {
	b.Helper()
	opts.ScratchDir = b.scratch
	opts.CloseTimeout, opts.CloseGrace = 5*time.Second, grace
	opts.MaxSessions = -1
	p, err := mcppool.New(&opts)
	require.NoError(b, err)
	b.Cleanup(func() {
		begun := time.Now()
		require.NoError(b, p.Close())
		require.Less(b, time.Since(begun), 7*time.Second, "the close took longer than CloseTimeout")
		requireNothingLeft(b)
	})
	return p
}

// text is all the text of an answer; some servers have it in the structured content alone.
func text(res *mcp.CallToolResult) string {
	var all strings.Builder
	for _, c := range res.Content {
		if c, ok := c.(mcp.TextContent); ok {
			all.WriteString(c.Text)
		}
	}
	if res.StructuredContent != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err != nil {
			panic(err) // it has just been decoded
		}
		all.Write(data)
	}
	return all.String()
}

// ask makes a call in a scope within two minutes. A server may answer with an error.
func (b *bench) ask(p *mcppool.Pool, srv mcppool.Server, scope string, c mcppool.Call) (string, mcppool.Served) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	var served mcppool.Served
	c.Scope, c.Served = scope, &served
	res, err := p.CallTool(ctx, srv, c)
	require.True(b, answered(err), "%s: %v", c.Tool, err)
	if err != nil {
		return err.Error(), served
	}
	return text(res), served
}

// leave puts a text into a session, if it holds any, and returns the session.
func (b *bench) leave(p *mcppool.Pool, srv mcppool.Server, scope, word string) mcppool.Served {
	b.Helper()
	c := b.get
	if b.put != nil {
		c = b.put
	}
	_, served := b.ask(p, srv, scope, c(word))
	return served
}

// session is the one that a pool has of a scope.
func (b *bench) session(p *mcppool.Pool, scope string) mcppool.SessionInfo {
	b.Helper()
	for s := range p.SessionsOf(scope) {
		return s
	}
	require.Fail(b, "no session", scope)
	return mcppool.SessionInfo{}
}

// during makes a call in the scope A that doesn't end by itself, for what happens meanwhile. Where the server
// has no slow tool it is frozen.
func (b *bench) during(ctx context.Context, p *mcppool.Pool, srv mcppool.Server) <-chan error {
	b.Helper()
	c, served := b.get("x"), mcppool.Served{}
	if b.slow != nil {
		c = b.slow()
	} else {
		freeze(b, b.session(p, "A").PID)
	}
	c.Scope, c.Served = "A", &served
	done := make(chan error, 1)
	go func() {
		_, err := p.CallTool(ctx, srv, c)
		done <- err
	}()
	eventually(b, "the call is under way", func() bool { return b.session(p, "A").Tool != "" })
	return done
}

// wait is the outcome of a call that is about to end.
func (b *bench) wait(done <-chan error) error {
	b.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		require.Fail(b, "the call goes on")
		return nil
	}
}

// said collects the methods of what a server tells unasked.
type said struct {
	mu      sync.Mutex
	methods []string
}

func (s *said) add(_ mcppool.Origin, n mcp.JSONRPCNotification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods = append(s.methods, n.Method)
}

func (s *said) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.methods...)
}

// answered reports whether a server answered, be it with an error.
func answered(err error) bool {
	var rpc *mcppool.RPCError
	return err == nil || errors.As(err, &rpc)
}

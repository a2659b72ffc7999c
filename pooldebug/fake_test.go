package pooldebug_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// hostile is what a server may call itself, and write in errors. In a page that
// takes it for HTML it changes the title.
const hostile = `"><img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>` + "\x1b[31m\u202e</script>"

const serveEnv = "POOLDEBUG_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is a real server with a hostile name and hostile stderr, which has its
// secret in it, too.
func serve() {
	_, _ = os.Stderr.WriteString(hostile + os.Getenv("API_KEY") + "\n")
	s := server.NewMCPServer(hostile, hostile)
	s.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	})
	_ = server.ServeStdio(s)
}

// client is a connection in memory. What a call does is said by its tool's name.
type client struct {
	name string
	done chan struct{}
	once sync.Once
}

func (c *client) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	switch req.Params.Name {
	case "wait":
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, errors.New("closed")
		}
	case "fail":
		return nil, &mcppool.RPCError{Code: 1, Message: hostile}
	case "second":
		time.Sleep(time.Second)
	}
	return mcp.NewToolResultText("done"), nil
}

func (c *client) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}

func (c *client) Info() *mcp.InitializeResult {
	return &mcp.InitializeResult{ProtocolVersion: "2025-11-25", ServerInfo: mcp.Implementation{Name: c.name, Version: "1"}}
}

func (c *client) Done() <-chan struct{} { return c.done }
func (c *client) Err() error            { return nil }
func (c *client) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// dial connects to the server that is called as srv's first argument is.
func dial(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
	c := &client{name: "unnamed", done: make(chan struct{})}
	if len(srv.Args) > 0 {
		c.name = srv.Args[0]
	}
	if c.name == "broken" {
		return nil, errors.New(hostile)
	}
	return c, nil
}

func named(name string) mcppool.Server {
	return mcppool.Server{Command: "server", Args: []string{name}}
}

// shown is a pool and its page, served.
type shown struct {
	*mcppool.Pool
	page *pooldebug.Page
	url  string
}

// show makes a pool of in-memory servers and its page, at a path of some depth.
func show(t *testing.T, opts *pooldebug.Options, poolOpts mcppool.Options) *shown {
	t.Helper()
	page := pooldebug.New(opts)
	poolOpts.Trace = page.Trace()
	if poolOpts.Dial == nil {
		poolOpts.Dial = dial
	}
	pool, err := mcppool.New(&poolOpts)
	require.NoError(t, err)
	page.Attach(pool)
	mux := http.NewServeMux()
	mux.Handle("/behind/some/prefix/", page)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		_ = pool.Close()
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &shown{pool, page, srv.URL + "/behind/some/prefix/"}
}

func (s *shown) call(t *testing.T, srv mcppool.Server, scope, tool string) error {
	t.Helper()
	_, err := s.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Scope: scope})
	return err
}

// Snapshot is the JSON of a page, as a reader of it would declare it.
type Snapshot struct {
	Now      int64
	Window   float64
	Covered  float64
	Attached bool
	Actions  bool
	Stats    struct {
		Live, Idle, Kept, Borrowed int
		Calls                      uint64
		Closed                     map[string]uint64
		Outcomes                   map[string]uint64
		BytesSent, BytesReceived   int64
	}
	Limits []struct {
		Name      string
		Used, Max int
	}
	Series struct {
		Slot   float64
		Counts map[string][]uint32
	}
	Latency map[string]struct {
		Count              uint64
		P50, P90, P99, Max float64
		Buckets            []uint32
	}
	Bounds   []float64
	Servers  []struct{ Server, Name, Backoff string }
	Sessions []Session
	Matching int
	Total    int
	Events   []Event
	LeftOut  int
	Order    []string // of an update
}

type Session struct {
	ID, Server, Scope, State, Reason, Tool, LastError, Name, Stderr string
	OneShot                                                         bool
	Opened, Used, Closed, ToolSince, Running                        int64
	Calls                                                           uint64
	InFlight, PID                                                   int
	Spans                                                           []struct {
		Begin       int64
		Took, Start float64
		Kind        string
		N           int
	}
}

type Event struct {
	Seq                                      uint64
	At                                       int64
	Kind, Level, Session, Server, Tool, Text string
	Took                                     float64
}

// ask gets the page's JSON without a connection, so that it works in a bubble.
func ask(t *testing.T, h http.Handler, query string) (s Snapshot) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?format=json&"+query, nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	return s
}

// names are those of the sessions' servers.
func names(s Snapshot) string {
	var all []string
	for _, x := range s.Sessions {
		all = append(all, x.Name)
	}
	return strings.Join(all, " ")
}

// kinds are those of the events.
func kinds(s Snapshot) string {
	var all []string
	for _, e := range s.Events {
		all = append(all, e.Kind)
	}
	return strings.Join(all, ", ")
}

// duration is that of a number of milliseconds.
func duration(ms float64) string { return time.Duration(ms * float64(time.Millisecond)).String() }

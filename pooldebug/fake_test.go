package pooldebug_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/pagetest"
)

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
	_, _ = os.Stderr.WriteString(pagetest.Hostile + os.Getenv("API_KEY") + "\n")
	s := server.NewMCPServer(pagetest.Hostile, pagetest.Hostile)
	s.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	})
	_ = server.ServeStdio(s)
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

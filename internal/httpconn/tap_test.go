package httpconn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/rpc"
)

// request is one that a server got.
type request struct {
	*http.Request
	ID     json.RawMessage
	Method string
	Params struct {
		Name string
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
}

func (r *request) answer(w http.ResponseWriter, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

const done = `{"content":[{"type":"text","text":"done"}]}`

// old is a server of the old era with sessions. Calls of tools are the func's.
func old(call func(http.ResponseWriter, *request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := request{Request: r}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		switch {
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			req.answer(w, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`)
		case req.Method == "tools/call":
			call(w, &req)
		default:
			req.answer(w, `{}`)
		}
	})
}

func callTool(t testing.TB, c *httpconn.Conn, tool string) error {
	t.Helper()
	_, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: tool})
	return err
}

func TestAStatusIsTheServersAndNoLoss(t *testing.T) {
	cfg := at(t, old(func(w http.ResponseWriter, r *request) {
		var code int
		_, _ = fmt.Sscan(r.Params.Name, &code)
		http.Error(w, "\n\x1bslow down\nmore of it "+strings.Repeat("x", 1<<20), code)
	}), rpc.Legacy)
	c := dial(t, cfg)
	for _, code := range []int{400, 401, 403, 413, 429, 500, 503} {
		err := callTool(t, c, fmt.Sprint(code))
		var status *rpc.StatusError
		require.ErrorAs(t, err, &status)
		require.Equal(t, code, status.Code)
		require.EqualError(t, err, fmt.Sprintf("HTTP status %d %s: slow down", code, http.StatusText(code)))
		require.False(t, httpconn.IsLost(err))
	}
	err := callTool(t, c, "404")
	require.EqualError(t, err, "connection lost: the server has ended the session")
	require.True(t, httpconn.IsLost(err))
}

func TestAFailedConnectNamesTheStatusAndWhatTheServerSaid(t *testing.T) {
	cfg := at(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such tenant", http.StatusForbidden)
	}), rpc.Auto)
	_, err := httpconn.Dial(within(t, soon), cfg)
	require.EqualError(t, err, "connect: HTTP status 403 Forbidden: no such tenant")
}

func TestAnAnswerThatCanNotBeReadIsNoLossAndOneThatBreaksOffIs(t *testing.T) {
	cfg := at(t, old(func(w http.ResponseWriter, r *request) {
		switch r.Params.Name {
		case "html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>")
		case "cut":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":`)
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": nothing\n\n")
		case "gone":
			panic(http.ErrAbortHandler)
		}
	}), rpc.Legacy)
	c := dial(t, cfg)
	for _, tool := range []string{"html", "cut"} {
		err := callTool(t, c, tool)
		var unclear *rpc.AnswerError
		require.ErrorAs(t, err, &unclear, tool)
		require.False(t, httpconn.IsLost(err))
	}
	for _, tool := range []string{"stream", "gone"} {
		require.True(t, httpconn.IsLost(callTool(t, c, tool)), tool)
	}
}

func TestAMessageAtAURLIsBounded(t *testing.T) {
	const limit = 100 << 10
	event := func(w http.ResponseWriter, data string) { fmt.Fprintf(w, "event: message\r\ndata: %s\r\n\r\n", data) }
	large := func(id json.RawMessage, n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", n))
	}
	cfg := at(t, old(func(w http.ResponseWriter, r *request) {
		kind, size, _ := strings.Cut(r.Params.Name, " ")
		n := 10
		if size == "large" {
			n = limit
		}
		if kind == "json" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, large(r.ID, n))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 100 { // of a stream each message counts for itself
			event(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"`+strings.Repeat("y", limit/10)+`"}}`)
		}
		event(w, large(r.ID, n))
	}), rpc.Legacy)
	cfg.MaxMessageSize = limit
	c := dial(t, cfg)
	for _, kind := range []string{"json", "stream"} {
		var unclear *rpc.AnswerError
		require.ErrorAs(t, callTool(t, c, kind+" large"), &unclear, kind)
		require.Equal(t, "it is larger than 102400 bytes", unclear.Reason)
		require.NoError(t, callTool(t, c, kind+" small"), "the connection lives")
	}
}

func TestEveryRequestToTheServerHasTheHeadersAndNoneToAnother(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]string)
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Method+" "+r.URL.Path] = r.Header.Get("X-Key")
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		http.Error(w, "", http.StatusTeapot)
	}))
	defer other.Close()
	serve := old(func(w http.ResponseWriter, r *request) {
		if r.Params.Name == "moved" {
			http.Redirect(w, r.Request, other.URL+"/other", http.StatusTemporaryRedirect)
			return
		}
		r.answer(w, done)
	})
	cfg := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		serve.ServeHTTP(w, r)
	}), rpc.Legacy)
	cfg.Header = map[string]string{"X-Key": "k"}
	c, err := httpconn.Dial(within(t, soon), cfg)
	require.NoError(t, err)
	require.NoError(t, callTool(t, c, "t"))
	require.Error(t, callTool(t, c, "moved"))
	require.NoError(t, c.Close())
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]string{"POST /": "k", "DELETE /": "k", "POST /other": ""}, seen)
}

func TestThatAServerIsSilentOnTheQuestionForItsEraIsRemembered(t *testing.T) {
	var questions atomic.Int64
	serve := old(func(w http.ResponseWriter, r *request) { r.answer(w, done) })
	cfg := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			questions.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the request isn't seen
			<-r.Context().Done()
			return
		}
		serve.ServeHTTP(w, r)
	}), rpc.Auto)
	for range 3 {
		cfg.Hurry = time.Now().Add(400 * time.Millisecond) // half of it is for the question
		require.NoError(t, callTool(t, dial(t, cfg), "t"))
	}
	require.EqualValues(t, 1, questions.Load())
}

func TestProgressAtAURLReachesItsCallInOrderBeforeItReturns(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		t.Run(string(era), func(t *testing.T) {
			tell := func(w http.ResponseWriter, r *request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", r.Params.Meta.ProgressToken, i+1)
				}
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", r.ID, done)
			}
			serve := old(tell)
			if era == rpc.Modern {
				serve = http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
					r := request{Request: hr}
					_ = json.NewDecoder(hr.Body).Decode(&r)
					if r.Method == "tools/call" {
						tell(w, &r)
						return
					}
					r.answer(w, `{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
				})
			}
			cfg := at(t, serve, era)
			cfg.Handlers.Notification = func(n mcp.JSONRPCNotification) { t.Errorf("%v is no progress of a call", n) }
			c := dial(t, cfg)
			for range 2 {
				var got []float64
				_, err := c.CallTool(within(t, soon), rpc.ToolCall{
					Tool: "t", Meta: &mcp.Meta{AdditionalFields: map[string]any{"own": 1}},
					OnProgress: func(n mcp.ProgressNotification) { got = append(got, n.Params.Progress) },
				})
				require.NoError(t, err)
				require.Equal(t, []float64{1, 2, 3}, got)
			}
		})
	}
}

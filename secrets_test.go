package mcppool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// secret has what gets escaped when it is written.
func secret(name string) string { return mark + "-" + name + "-" + mark + `" \<&%-` + mark }

// life is a test of secrets: a pool whose every word is heard.
type life struct {
	*ear
	t    *testing.T
	p    *mcppool.Pool
	page *pooldebug.Page
}

func newLife(t *testing.T, opts mcppool.Options) *life {
	t.Helper()
	l := &life{ear: new(ear), t: t, page: pooldebug.New(nil)}
	opts.Logger, opts.Trace = l.logger(), mcppool.MergeTraces(l.ear.trace(), l.page.Trace())
	if opts.Backoff.Failures == 0 {
		opts.Backoff.Failures = 1000
	}
	// What anything prints, or logs to the default logger.
	logged := log.Writer()
	log.SetOutput(l)
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	require.NoError(t, err)
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = printed, printed
	t.Cleanup(func() { // after the pool's, so that all was said
		os.Stdout, os.Stderr = stdout, stderr
		log.SetOutput(logged)
		text, err := os.ReadFile(printed.Name())
		require.NoError(t, err)
		require.NoError(t, printed.Close())
		l.hear("printed", string(text))
		for _, word := range []string{mark, base64.StdEncoding.EncodeToString([]byte(mark))[:5]} {
			for _, line := range l.mentions(word) {
				t.Errorf("leak: %q", line)
			}
		}
	})
	l.p = realPool(t, &opts)
	l.page.Attach(l.p)
	return l
}

// look looks at the pool as an operator does.
func (l *life) look() {
	l.sessions(l.p)
	for _, query := range []string{"", "?format=json"} {
		w := httptest.NewRecorder()
		l.page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+query, nil))
		require.Equal(l.t, http.StatusOK, w.Code, "%s", w.Body)
		l.hear("page", w.Body.String())
	}
}

// call makes a call whose result, if there is one, must have the secrets.
func (l *life) call(srv mcppool.Server, call mcppool.Call) error {
	return l.callWithin(time.Minute, srv, call)
}

func (l *life) callWithin(d time.Duration, srv mcppool.Server, call mcppool.Call) error {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	res, err := l.p.CallTool(ctx, srv, call)
	if err == nil {
		text := res.Content[0].(mcp.TextContent).Text
		require.Contains(l.t, text, mark, "the caller's own result is whole")
		require.NotContains(l.t, text, "[redacted]")
	}
	l.error("error", err)
	l.look()
	return err
}

// leaky is a server with secrets in all that can hold some, which tells them.
func leaky(t *testing.T, env ...string) mcppool.Server {
	t.Helper()
	userinfo := url.UserPassword(secret("user"), secret("password")).String()
	header, err := json.Marshal(map[string]string{"apiKey": secret("json")})
	require.NoError(t, err)
	srv := real(t, "leaky", env...)
	srv.Args = []string{
		"--token", secret("flag"), "--api-key=" + secret("equals"), "-H", "Authorization: Bearer " + secret("bearer"),
		"--header=X-Api-Key: " + secret("header"), string(header),
		"postgres://" + userinfo + "@db/x?sslpassword=" + url.QueryEscape(secret("query")),
	}
	srv.Env["TOKEN"] = secret("env")
	srv.Env["NEUTRAL"] = secret("neutral")
	srv.Env["KEY_FILE"] = secret("first line") + "\n" + secret("second line") + "\n"
	srv.Env["DATABASE"] = "mysql://" + userinfo + "@db/x"
	return srv
}

func TestNoSecretOfAChildIsToldToAnyoneButItsCaller(t *testing.T) {
	l := newLife(t, mcppool.Options{MaxSessions: 1, ProbeTimeout: 50 * time.Millisecond, Handlers: mcppool.Handlers{
		Notification: func(_ mcppool.Origin, n mcp.JSONRPCNotification) { panic(fmt.Sprint(n.Params)) },
	}})
	srv := leaky(t)
	for _, tool := range []string{"tell", "fail", "notify"} {
		require.NoError(t, l.call(srv, mcppool.Call{Tool: tool, Scope: "a", Args: map[string]string{"x": secret("argument")}}))
	}
	require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell"}))
	require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "b"}), "evicts a")
	require.Eventually(t, func() bool { return l.p.Stats().Closed[mcppool.ReasonLRU] > 0 }, 10*time.Second, time.Millisecond)
	tools, err := l.p.ListTools(t.Context(), srv, mcppool.Borrow{Scope: "b"})
	require.NoError(t, err)
	require.Contains(t, tools[0].Description, mark)
	for _, code := range []int{
		1, mcp.PARSE_ERROR, mcp.INVALID_REQUEST, mcp.METHOD_NOT_FOUND, mcp.INVALID_PARAMS, mcp.INTERNAL_ERROR,
		mcp.REQUEST_INTERRUPTED, mcp.RESOURCE_NOT_FOUND, mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY,
		mcp.UNSUPPORTED_PROTOCOL_VERSION, mcp.URL_ELICITATION_REQUIRED,
	} {
		var rpc *mcppool.RPCError
		require.ErrorAs(t, l.call(srv, mcppool.Call{Tool: "refuse", Scope: "b", Args: map[string]int{"code": code}}), &rpc)
	}
	for _, tool := range []string{"refuse oddly", "undecodable"} {
		require.Error(t, l.call(srv, mcppool.Call{Tool: tool, Scope: "b"}))
	}
	require.NoError(t, l.p.Do(t.Context(), srv, mcppool.Borrow{Scope: "b"}, func(ctx context.Context, s *mcppool.Session) error {
		_, err := s.ListPrompts(ctx, mcp.ListPromptsRequest{})
		l.error("error", err)
		_, err = s.ReadResource(ctx, mcp.ReadResourceRequest{})
		l.error("error", err)
		return nil
	}))
	for _, how := range []mcppool.AbandonPolicy{mcppool.AbandonDiscard, mcppool.AbandonProbe} {
		srv.Policy.AfterAbandon = how
		slow := mcppool.Call{Tool: "sleep", Scope: "b", Args: map[string]int{"ms": 300}}
		require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "b"}))
		require.ErrorIs(t, l.callWithin(50*time.Millisecond, srv, slow), context.DeadlineExceeded)
		require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "b"}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := l.p.CallTool(ctx, srv, slow)
		require.ErrorIs(t, err, context.Canceled)
		l.error("error", err)
	}
	for _, tool := range []string{"die", "die cut", "die garbled"} {
		require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "b"}))
		var lost *mcppool.SessionLostError
		require.ErrorAs(t, l.call(srv, mcppool.Call{Tool: tool, Scope: "b"}), &lost)
		require.Equal(t, "exit status 7", lost.Exit)
		require.Contains(t, lost.Stderr, "[redacted]")
	}
	l.closes(srv)
	require.NoError(t, l.p.Close())
	require.ErrorIs(t, l.call(srv, mcppool.Call{Tool: "tell"}), mcppool.ErrClosed)
	l.toldAll(t, "BackoffChanged")
}

// closes ends sessions in all ways, under a call.
func (l *life) closes(srv mcppool.Server) {
	t := l.t
	t.Helper()
	for _, end := range []func(){
		func() { l.p.CloseServer(srv) },
		func() { l.p.CloseCommand(srv) },
		func() { l.p.CloseScope("c") },
		func() {
			for s := range l.p.SessionsOf("c") {
				l.p.CloseSession(s.ID)
			}
		},
	} {
		require.NoError(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "c"}))
		ended := after(func() error {
			_, err := l.p.CallTool(t.Context(), srv, mcppool.Call{Tool: "sleep", Scope: "c", Args: map[string]int{"ms": 60000}})
			return err
		})
		waitInFlight(t, l.p, 1)
		l.look()
		end()
		err := <-ended
		require.ErrorIs(t, err, mcppool.ErrServerClosed)
		l.error("error", err)
	}
	require.ErrorIs(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "c", Check: func() bool { return false }}), mcppool.ErrServerClosed)
	require.ErrorIs(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "c", Check: func() bool { panic(secret("panic")) }}), mcppool.ErrServerClosed)
	l.p.RetireServer(srv)
}

// toldAll looks whether each func of the Trace was called, but for some, and
// that the life was one in which secrets could have been told.
func (l *life) toldAll(t *testing.T, but ...string) {
	t.Helper()
	told := l.ear.trace()
	funcs := reflect.ValueOf(told).Elem()
	for i := range funcs.NumField() {
		name := funcs.Type().Field(i).Name
		require.False(t, funcs.Field(i).IsNil(), "Trace.%s isn't heard", name)
		if !slices.Contains(but, name) {
			require.NotNil(t, l.heard["Trace."+name], "Trace.%s was never called", name)
		}
	}
	for _, where := range []string{"error", "log", "Sessions", "page", "Trace.ConnectEnd", "Trace.CallEnd", "Trace.Junk", "Trace.Stderr"} {
		require.Contains(t, l.heard[where].String(), "[redacted]", where)
	}
}

func TestNoSecretOfAChildThatDoesNotStartIsTold(t *testing.T) {
	l := newLife(t, mcppool.Options{
		Backoff: mcppool.Backoff{Failures: 1, Initial: time.Minute}, Limits: mcppool.Limits{MaxProcesses: 1, MaxWaiting: 1},
	})
	noDir, noProgram, noBinary := leaky(t), leaky(t), leaky(t)
	noDir.Dir = filepath.Join(t.TempDir(), "missing")
	noProgram.Command = "no-such-program"
	noBinary.Command = filepath.Join(t.TempDir(), "no-binary")
	require.NoError(t, os.WriteFile(noBinary.Command, []byte("\x00"), 0o700))
	for _, srv := range []mcppool.Server{
		noDir, noProgram, noBinary,
		leaky(t, "START", "exit"), leaky(t, "START", "half a line"), leaky(t, "START", "refuse"), leaky(t, "START", "version"),
	} {
		for range 2 { // the second may be held off
			require.Error(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "a"}))
		}
		require.Error(t, l.p.Prewarm(t.Context(), srv, 1))
		l.p.ResetBackoff(srv)
		l.error("error", l.p.Do(t.Context(), srv, mcppool.Borrow{Scope: "a"}, func(context.Context, *mcppool.Session) error { return nil }))
	}
	dying := leaky(t)
	require.ErrorIs(t, l.call(dying, mcppool.Call{Tool: "die", Scope: "a"}), mcppool.ErrSessionLost)
	require.Eventually(t, func() bool { return l.p.Stats().Open == 0 }, 10*time.Second, time.Millisecond)
	var start *mcppool.StartError
	require.ErrorAs(t, l.call(dying, mcppool.Call{Tool: "tell", Scope: "a"}), &start)
	require.Positive(t, start.RetryAfter)
	require.Empty(t, start.Stderr, "it served somebody else")
	l.p.ResetBackoff(dying)

	sleeping := after(func() error {
		_, err := l.p.CallTool(t.Context(), dying, mcppool.Call{Tool: "sleep", Scope: "a", Args: map[string]int{"ms": 60000}})
		return err
	})
	require.Eventually(t, func() bool {
		for i := range l.p.SessionsOf("a") {
			return i.Tool == "sleep"
		}
		return false
	}, 10*time.Second, time.Millisecond)
	l.look()
	waiting := after(func() error {
		_, err := l.p.CallTool(t.Context(), dying, mcppool.Call{Tool: "tell", Scope: "b"})
		return err
	})
	require.Eventually(t, func() bool { return l.p.Stats().Waiting == 1 }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, l.call(dying, mcppool.Call{Tool: "tell", Scope: "c"}), mcppool.ErrBusy)
	require.NoError(t, l.p.Close())
	for _, err := range []error{<-sleeping, <-waiting} {
		require.ErrorIs(t, err, mcppool.ErrClosed)
		l.error("error", err)
	}
	l.toldAll(t, "SessionReplaced", "Panicked")
}

func TestNoSecretOfAServerOverHTTPIsTold(t *testing.T) {
	l := newLife(t, mcppool.Options{ConnectTimeout: 2 * time.Second})
	told := server.NewMCPServer(secret("header"), "1")
	told.AddTool(mcp.NewTool("tell"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(req.Header.Get("X-Api-Key")), nil
	})
	told.AddTool(mcp.NewTool("refuse"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("refused %v", req.Header)
	})
	mux := http.NewServeMux()
	mux.Handle("/ok", server.NewStreamableHTTPServer(told))
	dump := func(r *http.Request) string {
		all, _ := httputil.DumpRequest(r, true)
		return strings.Join([]string{string(all), r.URL.String(), r.URL.RawQuery, fmt.Sprint(r.URL.Query()), fmt.Sprint(r.BasicAuth())}, "\n")
	}
	answer := func(pattern string, f func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, f)
	}
	for _, code := range []int{400, 401, 403, 404, 405, 500} {
		status := func(w http.ResponseWriter, r *http.Request) { http.Error(w, dump(r), code) }
		answer(fmt.Sprintf("/%d", code), status)
		answer(fmt.Sprintf("/%d/sse", code), status)
	}
	answer("/type", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "x/"+strings.ReplaceAll(r.Header.Get("X-Api-Key"), "\n", " "))
	})
	answer("/json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, dump(r))
	})
	answer("/rpc", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		message, _ := json.Marshal(dump(r))
		var req struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s,"data":%[2]s}}`, req.ID, message)
	})
	answer("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	})
	answer("/elsewhere/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: http://elsewhere/?%s\n\n", r.URL.RawQuery)
	})
	ts := httptest.NewServer(mux)
	defer ts.Close()
	at := func(base, path string) mcppool.Server {
		u, err := url.Parse(base + path)
		require.NoError(t, err)
		u.User = url.UserPassword(secret("user"), secret("password"))
		u.RawQuery = url.Values{"key": {secret("query")}, "other": {secret("other")}}.Encode()
		return mcppool.Server{URL: u.String(), Header: map[string]string{
			"X-Api-Key": secret("header"), "X-Auth": "Bearer " + secret("bearer"), "X-Other": "Token token=" + secret("token"),
		}}
	}
	require.NoError(t, l.call(at(ts.URL, "/ok"), mcppool.Call{Tool: "tell"}))
	require.Error(t, l.call(at(ts.URL, "/ok"), mcppool.Call{Tool: "refuse"}))
	require.Error(t, l.call(at(ts.URL, "/ok"), mcppool.Call{Tool: "missing", Scope: "a"}))
	servers := []mcppool.Server{at("http://127.0.0.1:1", "/"), at("http://127.0.0.1:1", "/sse"), at("http://no.such.host.invalid", "/")}
	for _, path := range []string{
		"/400", "/401", "/403", "/404", "/405", "/500", "/type", "/json", "/rpc", "/redirect",
		"/400/sse", "/401/sse", "/403/sse", "/404/sse", "/405/sse", "/500/sse", "/elsewhere/sse",
	} {
		servers = append(servers, at(ts.URL, path))
	}
	for _, srv := range servers {
		eras := []mcppool.Protocol{mcppool.ProtocolAuto, mcppool.ProtocolLegacy, mcppool.ProtocolModern}
		if strings.Contains(srv.URL, "/sse") {
			eras = eras[:1]
		}
		for _, srv.Protocol = range eras {
			require.Error(t, l.call(srv, mcppool.Call{Tool: "tell", Scope: "a"}), srv.URL)
		}
	}
	require.Contains(t, l.heard["error"].String(), "[redacted]")
}

func TestNoSecretOfABadConfigurationIsTold(t *testing.T) {
	l := newLife(t, mcppool.Options{})
	url := "http://" + mark + ":" + mark + "@host/?" + mark
	for _, srv := range []mcppool.Server{
		{},
		{Command: "c", Args: []string{mark + "\x00"}},
		{Command: "c", Env: map[string]string{"A": mark + "\x00"}},
		{Command: "c", Dir: mark + "\x00"},
		{Command: "c", URL: url},
		{Command: "c", Header: map[string]string{"A": mark}},
		{URL: url, Args: []string{mark}},
		{URL: url, Env: map[string]string{"A": mark}},
		{URL: url, Dir: mark},
		{URL: url + "\x7f"},
		{URL: strings.Replace(url, "http", "ftp", 1)},
		{URL: mark + ":" + mark + "@host/"}, // as if it were a scheme
		{URL: "http://" + mark + ":" + mark + "@/"},
		{URL: url, Header: map[string]string{"A": mark + "\n"}},
		{URL: url, Header: map[string]string{"A:": mark}},
	} {
		var bad *mcppool.ConfigError
		require.ErrorAs(t, l.call(srv, mcppool.Call{Tool: "t"}), &bad)
		l.hear("label", fmt.Sprintf("%v %+v %s %q", srv, srv, srv, srv))
		l.logger().Info("a caller's", slog.Any("server", srv), slog.Any("pointer", &srv))
	}
	srv := leaky(t)
	for _, args := range []any{
		json.RawMessage(mark), json.RawMessage(`{"a":` + mark), json.RawMessage(`["` + mark + `"]`), mark,
		map[string]any{mark: math.Inf(1)}, map[string]any{mark: make(chan int)}, badJSON(mark),
	} {
		require.Error(t, l.call(srv, mcppool.Call{Tool: "tell", Args: args}))
	}
	_, err := mcppool.ParseCommand("cmd '" + mark)
	l.error("error", err)
	_, err = mcppool.ParseCommand(`cmd "` + mark)
	l.error("error", err)
	require.Contains(t, l.heard["log"].String(), `server=host-`)
}

// badJSON fails to encode with its value in the error.
type badJSON string

func (b badJSON) MarshalJSON() ([]byte, error) { return nil, errors.New("can't encode " + string(b)) }

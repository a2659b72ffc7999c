package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve-demo" {
		serveDemo()
		return
	}
	goleak.VerifyTestMain(m)
}

// running is a backend that serves.
type running struct {
	t    *testing.T
	url  string
	pool *mcppool.Pool
	http *http.Client
	stop context.CancelFunc // begins the shutdown
	done chan error         // gives what serve returned
}

func start(t *testing.T, grace time.Duration) *running {
	t.Helper()
	page := pooldebug.New(nil)
	pool, err := mcppool.New(&mcppool.Options{Trace: page.Trace()})
	require.NoError(t, err)
	page.Attach(pool)
	demo, err := demoCatalog()
	require.NoError(t, err)
	e, err := demo.Lookup(t.Context(), "demo")
	require.NoError(t, err)
	// An instrumented binary waits for a second when it exits otherwise.
	e.Server.Env = map[string]string{"GORACE": "atexit_sleep_ms=0"}
	catalog, err := toolbox.NewStaticCatalog(e)
	require.NoError(t, err)
	return startWith(t, pool, catalog, page, grace)
}

func startWith(t *testing.T, pool *mcppool.Pool, catalog toolbox.Catalog, page http.Handler, grace time.Duration) *running {
	t.Helper()
	b, err := newBackend(pool, catalog)
	require.NoError(t, err)
	b.debug = page
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	transport := new(http.Transport)
	r := &running{t: t, url: "http://" + ln.Addr().String(), pool: pool, stop: stop, done: make(chan error, 1), http: &http.Client{Transport: transport}}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.done <- serve(ctx, ln, b, grace)
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		<-finished
		require.Zero(t, pool.Stats().Open, "no MCP server is left")
	})
	return r
}

// received is one event as it came.
type received struct {
	name string
	data map[string]any
}

// say begins a turn and gives its events as they come, until it ends.
func (r *running) say(ctx context.Context, chat, text string) (<-chan received, error) {
	body, err := json.Marshal(map[string]string{"text": text})
	require.NoError(r.t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/chats/"+chat+"/turn", strings.NewReader(string(body)))
	require.NoError(r.t, err)
	res, err := r.http.Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		return nil, err
	}
	require.Equal(r.t, http.StatusOK, res.StatusCode)
	require.Equal(r.t, "text/event-stream", res.Header.Get("Content-Type"))
	events := make(chan received, 1000)
	go func() {
		defer res.Body.Close()
		defer close(events)
		var e received
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				e.name = value
			case "data":
				e.data = nil
				if json.Unmarshal([]byte(value), &e.data) != nil {
					e.name = "not JSON: " + value
				}
			case "":
				events <- e
			}
		}
	}()
	return events, nil
}

// turn runs a whole turn.
func (r *running) turn(chat, text string) []received {
	r.t.Helper()
	events, err := r.say(r.t.Context(), chat, text)
	require.NoError(r.t, err)
	var all []received
	for e := range events {
		all = append(all, e)
	}
	require.NotEmpty(r.t, all)
	return all
}

func (r *running) answer(chat, text string) string {
	r.t.Helper()
	all := r.turn(chat, text)
	last := all[len(all)-1]
	require.Equal(r.t, "answer", last.name)
	return last.data["text"].(string)
}

func (r *running) do(method, path string, header ...string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader("{}"))
	require.NoError(r.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := r.http.Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, res.Body.Close())
	return res.StatusCode
}

func TestChatsKeepTheirStateApart(t *testing.T) {
	r := start(t, time.Minute)
	require.Equal(t, "Done: 1 remembered", r.answer("a", "remember milk"))
	require.Equal(t, "Done: 2 remembered", r.answer("a", "remember bread"))
	require.Equal(t, "Done: nothing", r.answer("b", "recall"))
	require.Equal(t, "Done: milk, bread", r.answer("a", "recall"))
	require.Equal(t, help, r.answer("a", "hello"))
	require.Contains(t, r.answer("a", "tools"), "mcp__demo__remember")
	require.Equal(t, "That is not a number.", r.answer("a", "wait for it"))
	require.Equal(t, 2, r.pool.Stats().Kept)
}

func TestProgressIsStreamedWhileTheToolRuns(t *testing.T) {
	r := start(t, time.Minute)
	events, err := r.say(t.Context(), "a", "wait 0.5")
	require.NoError(t, err)
	require.Equal(t, received{"call", map[string]any{"id": "1", "name": "mcp__demo__wait", "args": `{"seconds":0.5}`}}, <-events)
	progress := 0
	for e := range events {
		switch e.name {
		case "progress":
			progress++
			require.InDelta(t, 0.5, e.data["total"], 0)
		case "result":
			require.Equal(t, "waited 0.5 s", e.data["text"])
		case "answer":
			require.Equal(t, "Done: waited 0.5 s", e.data["text"])
		}
	}
	require.Positive(t, progress)
}

func TestStopCancelsTheTurnAtOnce(t *testing.T) {
	r := start(t, time.Minute)
	begin := time.Now()
	events, err := r.say(t.Context(), "a", "wait 600")
	require.NoError(t, err)
	require.Equal(t, "call", (<-events).name)
	require.Equal(t, "progress", (<-events).name)
	require.Equal(t, http.StatusConflict, r.do(http.MethodPost, "/chats/a/turn"), "one turn of a chat at a time")
	require.Equal(t, "Done: nothing", r.answer("b", "recall"), "other chats go on")
	require.Equal(t, http.StatusNoContent, r.do(http.MethodPost, "/chats/a/stop"))
	var last, result received
	for e := range events {
		if e.name == "result" {
			result = e
		}
		last = e
	}
	require.Equal(t, "Error: MCP tool 'wait' cancelled", result.data["text"])
	require.Equal(t, "stopped", last.name)
	require.Less(t, time.Since(begin), 30*time.Second)
	require.Contains(t, r.answer("a", "recall"), "Done: nothing\n[This MCP server was started anew", "the chat goes on")
	require.Equal(t, http.StatusNoContent, r.do(http.MethodPost, "/chats/a/stop"), "there is nothing to stop")
}

func TestABrowserThatLeavesCancelsItsTurn(t *testing.T) {
	r := start(t, time.Minute)
	ctx, leave := context.WithCancel(t.Context())
	events, err := r.say(ctx, "a", "wait 600")
	require.NoError(t, err)
	require.Equal(t, "call", (<-events).name)
	leave()
	for range events {
	}
	// The chat takes its next turn once the last one has ended.
	require.Eventually(t, func() bool { return r.do(http.MethodPost, "/chats/a/turn") == http.StatusOK }, 10*time.Second, 10*time.Millisecond)
}

func TestPicturesAndCrashesReachTheBrowser(t *testing.T) {
	r := start(t, time.Minute)
	draw := r.turn("a", "draw")
	require.Equal(t, "result", draw[1].name)
	require.Contains(t, draw[1].data["text"], "[image: image/png, ")
	require.Contains(t, draw[1].data["images"].([]any)[0], "data:image/png;base64,iVBOR")
	crash := r.turn("a", "crash")
	require.Equal(t, "Error: MCP tool 'crash' failed: MCP server stopped during the call (exit status 3); the tool may have run", crash[1].data["text"])
	require.Contains(t, r.answer("a", "recall"), "Done: nothing\n[This MCP server was started anew")
	require.Equal(t, "Done: nothing", r.answer("a", "recall"), "it is said once")
}

func TestADeletedChatLeavesNoServer(t *testing.T) {
	r := start(t, time.Minute)
	r.answer("a", "remember milk")
	r.answer("b", "remember bread")
	events, err := r.say(t.Context(), "a", "wait 600")
	require.NoError(t, err)
	require.Equal(t, "call", (<-events).name)
	require.Equal(t, http.StatusNoContent, r.do(http.MethodDelete, "/chats/a"))
	for range events {
	}
	require.Eventually(t, func() bool { return r.pool.Stats().Open == 1 }, 10*time.Second, 5*time.Millisecond)
	require.Contains(t, r.answer("a", "recall"), "Done: nothing")
	require.Equal(t, "Done: bread", r.answer("b", "recall"))
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	r := start(t, time.Minute)
	require.Equal(t, http.StatusBadRequest, r.do(http.MethodPost, "/chats/a.b/turn"))
	require.Equal(t, http.StatusBadRequest, r.do(http.MethodPost, "/chats/a.b/stop"))
	require.Equal(t, http.StatusBadRequest, r.do(http.MethodDelete, "/chats/a.b"))
	require.Equal(t, http.StatusForbidden, r.do(http.MethodPost, "/chats/a/turn", "Origin", "https://elsewhere.example"))
	require.Equal(t, http.StatusForbidden, r.do(http.MethodPost, "/chats/a/turn", "Sec-Fetch-Site", "cross-site"))
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/"))
	require.Equal(t, http.StatusNotFound, r.do(http.MethodGet, "/main.go"))
	res, err := r.http.Post(r.url+"/chats/a/turn", "", strings.NewReader(`{"text": `))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
}

func TestShutdownLetsTurnsFinish(t *testing.T) {
	r := start(t, time.Minute)
	events, err := r.say(t.Context(), "a", "wait 0.5")
	require.NoError(t, err)
	require.Equal(t, "call", (<-events).name)
	r.stop()
	var last received
	for e := range events {
		last = e
	}
	require.Equal(t, received{"answer", map[string]any{"text": "Done: waited 0.5 s"}}, last)
	require.NoError(t, <-r.done)
	_, err = r.say(t.Context(), "a", "recall")
	require.Error(t, err, "nobody listens any more")
	require.Zero(t, r.pool.Stats().Open)
}

func TestShutdownStopsTurnsThatOutliveItsGrace(t *testing.T) {
	r := start(t, 50*time.Millisecond)
	events, err := r.say(t.Context(), "a", "wait 600")
	require.NoError(t, err)
	require.Equal(t, "call", (<-events).name)
	begin := time.Now()
	r.stop()
	var last received
	for e := range events {
		last = e
	}
	require.Equal(t, "stopped", last.name)
	require.NoError(t, <-r.done)
	require.Less(t, time.Since(begin), 20*time.Second)
	require.Zero(t, r.pool.Stats().Open)
}

func TestAWatchedConfigurationBringsItsServers(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "mcp.json")
	config := func(id string) {
		text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{id: map[string]any{"command": self, "args": []string{"serve-demo"}}}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	config("mine")
	pool, err := mcppool.New(nil)
	require.NoError(t, err)
	watched, err := mcpservers.WatchCatalog(pool, &mcpservers.CatalogOptions{Interval: -1, OnReload: logReload}, file)
	require.NoError(t, err)
	defer watched.Close()
	r := startWith(t, pool, watched, nil, time.Minute)
	require.Contains(t, r.answer("a", "tools"), "mcp__mine__recall")
	require.Equal(t, "Done: 1 remembered", r.answer("a", `call mcp__mine__remember {"text":"x"}`))
	config("yours")
	require.Empty(t, watched.Reload().Errs)
	require.Contains(t, r.answer("a", "tools"), "mcp__yours__recall")
	require.Equal(t, "Done: x", r.answer("a", `call mcp__yours__recall`), "another name is no other server")
}

func TestTheLivePageShowsTheSessions(t *testing.T) {
	r := start(t, time.Second)
	res, err := r.http.Get(r.url + "/debug/pool/?format=json")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, res.Header.Get("Content-Type"), "application/json")
}

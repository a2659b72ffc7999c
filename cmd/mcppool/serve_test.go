package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
)

const soon = 20 * time.Second

// logged is a log that tests look at while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// serving runs serve until the test's end, or until end is called.
type serving struct {
	url string // of the gateway, without a path
	log *logged
	end func() error
}

func startServing(t *testing.T, change func(*serveOptions), files ...string) *serving {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	o, err := parseServe(append([]string{"-listen", addr, "-drain", "10s"}, files...), io.Discard)
	require.NoError(t, err)
	if change != nil {
		change(o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log := new(logged)
	ended := make(chan error, 1)
	go func() {
		ended <- o.run(ctx, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}()
	end := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		require.NoError(t, end())
		http.DefaultClient.CloseIdleConnections()
	})
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=serving") }, soon, time.Millisecond)
	return &serving{"http://" + addr, log, end}
}

// get is a GET, with headers in pairs.
func get(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(data)
}

// connect is a client of the gateway as others have it.
func connect(t *testing.T, s *serving, opts ...transport.StreamableHTTPCOption) *client.Client {
	t.Helper()
	c, err := client.NewStreamableHttpClient(s.url+"/mcp", opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Start(t.Context()))
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-06-18"
	hello.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	_, err = c.Initialize(t.Context(), hello)
	require.NoError(t, err)
	return c
}

func calls(t *testing.T, c *client.Client, tool string, args map[string]any) string {
	t.Helper()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := c.CallTool(t.Context(), req)
	require.NoError(t, err)
	require.NotEmpty(t, res.Content)
	return res.Content[0].(mcp.TextContent).Text
}

func toolNames(t *testing.T, c *client.Client) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	require.NoError(t, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// awaits waits for a server's tools.
func awaits(t *testing.T, c *client.Client, tool string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(toolNames(t, c), " "), tool) }, soon, 10*time.Millisecond)
}

func TestEachClientHasAStateOfItsOwnThatEndsWithIt(t *testing.T) {
	s := startServing(t, nil, cursorFile(t, named{"a", counterEntry()}))
	one, two := connect(t, s), connect(t, s)
	awaits(t, one, "mcp__a__count")
	require.Equal(t, "1", calls(t, one, "mcp__a__count", nil))
	require.Equal(t, "2", calls(t, one, "mcp__a__count", nil))
	require.Equal(t, "1", calls(t, two, "mcp__a__count", nil))
	require.NoError(t, one.Close())
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `reason="scope closed"`) }, soon, time.Millisecond)
	require.Equal(t, "2", calls(t, two, "mcp__a__count", nil))
}

func TestAHeaderMayNameTheConversation(t *testing.T) {
	s := startServing(t, func(o *serveOptions) { o.header = "X-Chat" }, cursorFile(t, named{"a", counterEntry()}))
	chat := func(name string) *client.Client {
		return connect(t, s, transport.WithHTTPHeaders(map[string]string{"X-Chat": name}))
	}
	one := chat("one")
	awaits(t, one, "mcp__a__count")
	require.Equal(t, "1", calls(t, one, "mcp__a__count", nil))
	require.Equal(t, "2", calls(t, chat("one"), "mcp__a__count", nil), "whichever connection it comes by")
	require.Equal(t, "1", calls(t, chat("two"), "mcp__a__count", nil))
}

// The newest revision has no sessions: without another name for a conversation a client
// that speaks both is to keep its state.
func TestClientsOfEitherEraKeepTheirState(t *testing.T) {
	newest := func(s *serving, opts ...transport.StreamableHTTPCOption) *client.Client {
		c, err := client.NewStreamableHttpClient(s.url+"/mcp", opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Start(t.Context()))
		_, err = c.Initialize(t.Context(), mcp.InitializeRequest{})
		require.NoError(t, err)
		awaits(t, c, "mcp__a__count")
		return c
	}
	file := cursorFile(t, named{"a", counterEntry()})
	c := newest(startServing(t, nil, file))
	require.Equal(t, "1", calls(t, c, "mcp__a__count", nil))
	require.Equal(t, "2", calls(t, c, "mcp__a__count", nil))

	s := startServing(t, func(o *serveOptions) { o.header = "X-Chat" }, file)
	c = newest(s, transport.WithHTTPHeaders(map[string]string{"X-Chat": "one"}))
	require.Equal(t, "1", calls(t, c, "mcp__a__count", nil))
	require.Equal(t, "2", calls(t, c, "mcp__a__count", nil))
}

func TestProgressAndCancelReachTheOtherSide(t *testing.T) {
	s := startServing(t, nil, cursorFile(t, named{"a", counterEntry()}))
	c := connect(t, s)
	awaits(t, c, "mcp__a__notify")
	told := make(chan any, 10)
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			told <- n.Params.AdditionalFields["progressToken"]
		}
	})
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = "mcp__a__notify", map[string]any{}
	req.Params.Meta = &mcp.Meta{ProgressToken: "mine"}
	_, err := c.CallTool(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "mine", <-told)
	require.Equal(t, "mine", <-told)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	req.Params.Name, req.Params.Arguments = "mcp__a__sleep", map[string]any{"ms": 60_000}
	_, err = c.CallTool(ctx, req)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `outcome=cancelled`) }, soon, time.Millisecond)
}

func TestAnEditOfTheFileCounts(t *testing.T) {
	file := cursorFile(t, named{"a", counterEntry()})
	s := startServing(t, nil, file)
	c := connect(t, s)
	awaits(t, c, "mcp__a__count")
	more, err := os.ReadFile(cursorFile(t, named{"a", counterEntry()}, named{"b", counterEntry()}))
	require.NoError(t, err)
	next := filepath.Join(t.TempDir(), "next")
	require.NoError(t, os.WriteFile(next, more, 0o600))
	require.NoError(t, os.Rename(next, file))
	awaits(t, c, "mcp__b__count")
	require.Equal(t, "1", calls(t, c, "mcp__b__count", nil))
}

func TestCallsUnderWayEndBeforeTheGatewayDoes(t *testing.T) {
	for _, opts := range [][]transport.StreamableHTTPCOption{nil, {transport.WithContinuousListening()}} {
		s := startServing(t, nil, cursorFile(t, named{"a", counterEntry()}))
		c := connect(t, s, opts...)
		awaits(t, c, "mcp__a__sleep")
		calls(t, c, "mcp__a__count", nil) // it is up
		answered := make(chan *mcp.CallToolResult, 1)
		go func() {
			var req mcp.CallToolRequest
			req.Params.Name, req.Params.Arguments = "mcp__a__sleep", map[string]any{"ms": 1000}
			res, _ := c.CallTool(context.Background(), req)
			answered <- res
		}()
		require.Eventually(t, func() bool {
			_, body := get(t, s.url+"/debug/mcppool?format=json")
			return strings.Contains(body, `"sleep"`)
		}, soon, time.Millisecond)
		require.NoError(t, s.end())
		res := <-answered
		require.NotNil(t, res)
		require.Equal(t, "slept", res.Content[0].(mcp.TextContent).Text)
	}
}

func TestAClientThatIsGoneEndsAndOneThatWaitsDoesNot(t *testing.T) {
	s := startServing(t, func(o *serveOptions) { o.idle = 500 * time.Millisecond }, cursorFile(t, named{"a", counterEntry()}))
	c := connect(t, s)
	awaits(t, c, "mcp__a__sleep")
	require.Equal(t, "slept", calls(t, c, "mcp__a__sleep", map[string]any{"ms": 3000}))
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `reason="scope closed"`) }, soon, time.Millisecond)
	_, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	require.Error(t, err, "it is to begin anew")
}

func TestWhoMayAsk(t *testing.T) {
	file := cursorFile(t, named{"a", counterEntry()})
	open := startServing(t, nil, file)
	for _, path := range []string{"/healthz", "/metrics", "/debug/mcppool", "/mcp"} {
		status, _ := get(t, open.url+path, "Host", "evil.example")
		require.Equal(t, http.StatusForbidden, status, path)
		status, _ = get(t, open.url+path, "Origin", "http://evil.example")
		require.Equal(t, http.StatusForbidden, status, path)
	}
	status, body := get(t, open.url+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "mcppool_")

	closed := startServing(t, func(o *serveOptions) { o.token = "sesame" }, file)
	for _, path := range []string{"/metrics", "/debug/mcppool", "/mcp"} {
		for _, shown := range []string{"", "Bearer", "Bearer sesam", "Basic sesame", "sesame"} {
			status, _ := get(t, closed.url+path, "Authorization", shown)
			require.Equal(t, http.StatusUnauthorized, status, path)
		}
	}
	status, _ = get(t, closed.url+"/metrics", "Authorization", "bearer sesame", "Host", "gateway.example")
	require.Equal(t, http.StatusOK, status)
	status, body = get(t, closed.url+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "ok\n")
	require.NotContains(t, closed.log.String(), "sesame")
}

func TestWhatServeCanNotDoIsSaid(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for says, args := range map[string][]string{
		"no file is named":    {},
		"needs a token":       {"-listen", ":8808", "mcp.json"},
		"the file is empty":   {"-token-file", empty, "mcp.json"},
		"-token-file: open":   {"-token-file", empty + "?", "mcp.json"},
		"-listen: address":    {"-listen", "8808", "mcp.json"},
		"-idle: isn't":        {"-idle", "0s", "mcp.json"},
		"isn't known":         {"-host", "curser", "mcp.json"},
		"can't be read":       {"-listen", "127.0.0.1:0", filepath.Join(t.TempDir(), "mcp.json")},
		"usage: mcppool serv": {"-nope"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, statusUsage, run(t.Context(), append([]string{"serve"}, args...), io.Discard, &stderr), args)
		require.Contains(t, stderr.String(), says)
	}
	require.Equal(t, statusFine, run(t.Context(), []string{"serve", "-h"}, io.Discard, io.Discard))
}

func TestClientsThatBeginTooManySessionsLoseThoseThatAreUnused(t *testing.T) {
	var ended []string
	c := newConversations(func(id string) { ended = append(ended, id) })
	busy, first := c.Generate(), c.Generate()
	done := c.use(busy)
	gone := c.Generate()
	_, err := c.Terminate(gone)
	require.NoError(t, err)
	for range maxConversations - 1 {
		c.Generate()
	}
	require.Equal(t, []string{gone, first}, ended)
	_, err = c.Validate(first)
	require.Error(t, err)
	_, err = c.Terminate(first)
	require.Error(t, err, "it ends once")
	require.Len(t, c.live, maxConversations)
	require.Empty(t, c.unused(time.Hour))
	done()
	c.use(first)() // which is no session any more
	require.NotEqual(t, busy, c.unused(0), "it was used last")
}

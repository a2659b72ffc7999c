package pooldebug_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/pagetest"
	"github.com/mcppool/mcppool/pooldebug"
)

func TestJSONTellsOfSessionsLimitsCountersLatenciesAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := mcppool.Limits{MaxProcesses: 10, MaxPerServer: 2}
		page := pooldebug.New(&pooldebug.Options{MaxSessions: 4})
		require.False(t, ask(t, page, "").Attached)
		pool, err := mcppool.New(&mcppool.Options{MaxSessions: 4, Dial: pagetest.Dial, Trace: page.Trace(), Limits: limits})
		require.NoError(t, err)
		defer pool.Close()
		page.Attach(pool)
		s := &pagetest.Shown{Pool: pool, Page: page}

		begun := time.Now()
		require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "second"))
		require.Error(t, s.Call(t, pagetest.Named("a"), "one", "fail"))
		waiting := make(chan error, 1)
		go func() { waiting <- s.Call(t, pagetest.Named("b"), "two", "wait") }()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Error(t, s.Call(t, pagetest.Named("broken"), "three", "t"))
		synctest.Wait() // until the pool has forgotten it

		got := ask(t, page, "sort=opened")
		require.True(t, got.Attached)
		require.False(t, got.Actions)
		require.Equal(t, "5m0s", duration(got.Window))
		require.Equal(t, "1m1s", duration(got.Covered))
		require.Equal(t, time.Now().UnixMilli(), got.Now)
		require.EqualValues(t, 2, got.Stats.Calls-got.Stats.Outcomes["not sent"])
		require.Equal(t, 2, got.Stats.Live)
		require.Equal(t, 1, got.Stats.Borrowed)
		require.Equal(t, 1, got.Stats.Idle)
		require.EqualValues(t, 1, got.Stats.Outcomes["rpc error"])
		require.Equal(t, "[{MaxSessions 2 4} {MaxProcesses 2 10} {MaxPerServer 1 2}]", fmt.Sprint(got.Limits))
		require.Equal(t, "opened, ok, rpc error, opened, start failed", kinds(got))

		require.Len(t, got.Sessions, 3)
		a, b, broken := got.Sessions[0], got.Sessions[1], got.Sessions[2]
		require.Equal(t, "a", a.Name)
		require.True(t, strings.HasPrefix(a.Scope, "scope-"), a.Scope)
		require.EqualValues(t, 2, a.Calls)
		require.Contains(t, a.LastError, "<img")
		require.Equal(t, begun.UnixMilli(), a.Opened)
		require.Len(t, a.Spans, 3)
		require.Equal(t, "connect", a.Spans[0].Kind)
		require.Equal(t, "call", a.Spans[1].Kind)
		require.Equal(t, begun.UnixMilli(), a.Spans[1].Begin)
		require.Equal(t, "1s", duration(a.Spans[1].Took))
		require.Equal(t, "failed", a.Spans[2].Kind)
		require.Equal(t, "wait", b.Tool)
		require.Equal(t, begun.Add(time.Second).UnixMilli(), b.ToolSince)
		require.Equal(t, 1, b.InFlight)
		require.Equal(t, "closed", broken.State)
		require.Equal(t, "start failed", broken.Reason)
		require.Equal(t, "connect failed", broken.Spans[0].Kind)

		call := got.Latency["call"]
		require.EqualValues(t, 2, call.Count)
		require.Equal(t, "1s", duration(call.Max))
		require.LessOrEqual(t, call.P99, call.Max)
		require.EqualValues(t, 1, call.Buckets[0])
		require.EqualValues(t, 1, call.Buckets[14], "1 s is below %v", got.Bounds[14])
		require.EqualValues(t, 3, got.Latency["connect"].Count)
		var calls uint32
		for _, n := range got.Series.Counts["calls"] {
			calls += n
		}
		require.EqualValues(t, 2, calls)
		require.EqualValues(t, 1, got.Series.Counts["closed"][59], "a failed start is a session that ended, as in Stats")

		pool.CloseScope("two")
		require.ErrorIs(t, <-waiting, mcppool.ErrServerClosed)
		synctest.Wait()
		got = ask(t, page, "sort=opened")
		require.Equal(t, "closed", got.Sessions[1].State)
		require.Equal(t, "scope closed", got.Sessions[1].Reason)
		require.Equal(t, b.Scope, got.Sessions[1].Scope, "what was seen while it was open")

		// What is older than the window is gone: the session closed 5 minutes after
		// its last call, and is shown for 5 more.
		time.Sleep(11 * time.Minute)
		got = ask(t, page, "")
		require.Equal(t, "5m0s", duration(got.Covered))
		require.Zero(t, got.Latency["call"].Count)
		require.Empty(t, got.Sessions)
	})
}

func TestQueueLatencyIsThatOfTurnsAndLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pooldebug.New(nil)
		pool, err := mcppool.New(&mcppool.Options{Dial: pagetest.Dial, Trace: page.Trace()})
		require.NoError(t, err)
		defer pool.Close()
		s := &pagetest.Shown{Pool: pool, Page: page}
		first := make(chan error, 1)
		go func() { first <- s.Call(t, pagetest.Named("a"), "one", "second") }()
		synctest.Wait()
		require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "t"))
		require.NoError(t, <-first)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		go func() { first <- s.Call(t, pagetest.Named("a"), "one", "second") }()
		synctest.Wait()
		_, err = s.CallTool(ctx, pagetest.Named("a"), mcppool.Call{Tool: "t", Scope: "one"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, <-first)
		got := ask(t, page, "")
		require.EqualValues(t, 2, got.Latency["queue"].Count)
		require.Equal(t, "1s", duration(got.Latency["queue"].Max))
		require.Contains(t, kinds(got), "gave up waiting")
	})
}

func TestSearchAndSort(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{ShowScopes: true})
	for i, name := range []string{"pear", "apple", "fig"} {
		for range i + 1 {
			require.NoError(t, s.Call(t, pagetest.Named(name), "chat of "+name, "t"))
		}
	}
	require.Error(t, s.Call(t, pagetest.Named("broken"), "x", "t"))
	for s.Stats().Open > 3 {
		runtime.Gosched() // until the pool has forgotten it
	}
	for query, want := range map[string]string{
		"sort=calls":              "pear apple fig",
		"sort=-calls":             "fig apple pear",
		"sort=scope&closed=no":    "apple fig pear",
		"sort=-scope&closed=no":   "pear fig apple",
		"sort=id&closed=no":       "pear apple fig",
		"closed=no":               "fig apple pear",
		"sort=nonsense&closed=no": "fig apple pear",
		"q=APPLE":                 "apple",
		"q=chat+fig":              "fig",
		"q=chat+fig+apple":        "",
		"q=idle&sort=id":          "pear apple fig",
		"q=start+failed":          "",
		"sort=id&limit=1":         "pear",
	} {
		got := ask(t, s.Page, query)
		require.Equal(t, want, strings.TrimSpace(names(got)), query)
		require.Equal(t, 4, got.Total+strings.Count(query, "closed=no"), query)
	}
	require.Equal(t, 1, ask(t, s.Page, "q=start+failed").Matching)
	require.Equal(t, 4, ask(t, s.Page, "limit=1").Matching)
}

func TestThePageHoldsNothingOfThePoolAndAllowsOnlyItsOwnScript(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{})
	require.NoError(t, s.Call(t, pagetest.Named(pagetest.Hostile), pagetest.Hostile, "t"))
	nonces := make(map[string]bool)
	for range 2 {
		r, err := http.Get(s.URL)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.NotContains(t, string(body), "onerror=")
		policy := r.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe")
		_, nonce, _ := strings.Cut(policy, "'nonce-")
		nonce, _, _ = strings.Cut(nonce, "'")
		require.Equal(t, 2, strings.Count(string(body), `nonce="`+nonce+`"`), "a style and a script")
		require.NotContains(t, string(body), "{{")
		nonces[nonce] = true
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
	}
	require.Len(t, nonces, 2)
}

func TestHostileTextsAreMadeVisible(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{ShowScopes: true})
	require.Error(t, s.Call(t, pagetest.Named(pagetest.Hostile), pagetest.Hostile, "fail"))
	w := httptest.NewRecorder()
	s.Page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?format=json", nil))
	require.NotContains(t, w.Body.String(), "<img", "not even a browser that guesses sees HTML")
	got := ask(t, s.Page, "")
	for _, text := range []string{got.Sessions[0].Name, got.Sessions[0].LastError, got.Sessions[0].Scope} {
		require.Contains(t, text, "<img src=x")
		require.Contains(t, text, "\u241b[31m\ufffd")
	}
}

func TestARealServerIsShownWithItsProcessAndStderr(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	page := pooldebug.New(nil)
	pool, err := mcppool.New(&mcppool.Options{Trace: page.Trace()})
	require.NoError(t, err)
	defer pool.Close()
	page.Attach(pool)
	srv := mcppool.Server{Command: self, Env: map[string]string{serveEnv: "1", "API_KEY": "sesame-open-123"}}
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "t", Scope: "one"})
	require.NoError(t, err)
	for {
		all := ask(t, page, "")
		got := all.Sessions[0]
		require.NotZero(t, got.PID)
		require.Positive(t, all.Stats.BytesSent)
		require.Greater(t, all.Stats.BytesReceived, all.Stats.BytesSent, "it says a long name")
		require.Contains(t, got.Name, "<img src=x")
		require.Equal(t, "connect", got.Spans[0].Kind)
		require.Positive(t, got.Spans[0].Start)
		require.Less(t, got.Spans[0].Start, got.Spans[0].Took)
		if i := slices.IndexFunc(all.Events, func(e Event) bool { return e.Kind == "stderr" }); i >= 0 && got.Stderr != "" {
			for _, text := range []string{got.Stderr, all.Events[i].Text} {
				require.Contains(t, text, "<img src=x")
				require.Contains(t, text, "\u241b[31m\ufffd")
				require.NotContains(t, text, "sesame")
			}
			require.Equal(t, got.ID, all.Events[i].Session)
			break
		}
	}
}

// post presses a button as a browser would.
func post(t *testing.T, to string, header map[string]string, form url.Values) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for k, v := range header {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode, strings.TrimSpace(string(body))
}

var sameOrigin = map[string]string{"Sec-Fetch-Site": "same-origin"}

func TestButtonsCloseASessionAServerAndIdleOnes(t *testing.T) {
	s := pagetest.Show(t, &pooldebug.Options{Actions: true}, mcppool.Options{})
	for i := range 3 {
		require.NoError(t, s.Call(t, pagetest.Named("a"), fmt.Sprint(i), "t"))
		require.NoError(t, s.Call(t, pagetest.Named("b"), fmt.Sprint(i), "t"))
	}
	open := func() int { return s.Stats().Live }
	require.Equal(t, 6, open())

	got := ask(t, s.Page, "sort=id")
	id := url.Values{"action": {"session"}, "id": {got.Sessions[0].ID}}
	code, body := post(t, s.URL, sameOrigin, id)
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"closed":1}`, body)
	require.Equal(t, 5, open())
	_, body = post(t, s.URL, sameOrigin, id)
	require.JSONEq(t, `{"closed":0}`, body)

	server := url.Values{"action": {"server"}, "server": {pagetest.Named("b").String()}}
	_, body = post(t, s.URL, sameOrigin, server)
	require.JSONEq(t, `{"closed":3}`, body)
	require.Equal(t, 2, open())

	code, _ = post(t, s.URL, sameOrigin, url.Values{"action": {"idle"}})
	require.Equal(t, http.StatusOK, code)
	require.Zero(t, open())

	code, _ = post(t, s.URL, sameOrigin, url.Values{"action": {"nonsense"}})
	require.Equal(t, http.StatusBadRequest, code)
	code, _ = post(t, s.URL, sameOrigin, url.Values{"action": {strings.Repeat("x", 10_000)}})
	require.Equal(t, http.StatusBadRequest, code)
}

func TestOtherSitesCannotPressButtons(t *testing.T) {
	s := pagetest.Show(t, &pooldebug.Options{Actions: true}, mcppool.Options{})
	require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "t"))
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	port, _, _ = strings.Cut(port, "/")
	idle := url.Values{"action": {"idle"}}
	for name, header := range map[string]map[string]string{
		"cross-site":                     {"Sec-Fetch-Site": "cross-site"},
		"same-site":                      {"Sec-Fetch-Site": "same-site"},
		"an older browser":               {"Origin": "http://evil.example"},
		"another port":                   {"Origin": "http://127.0.0.1:1"},
		"no origin":                      {"Origin": "null"},
		"a name that points here, later": {"Sec-Fetch-Site": "same-origin", "Host": "evil.example:" + port},
	} {
		code, _ := post(t, s.URL, header, idle)
		require.Equal(t, http.StatusForbidden, code, name)
	}
	require.Equal(t, 1, s.Stats().Live)
	code, _ := post(t, s.URL, map[string]string{"Origin": "http://127.0.0.1:" + port}, idle)
	require.Equal(t, http.StatusOK, code)
	require.Zero(t, s.Stats().Live)
}

func TestThereAreNoActionsUnlessAskedFor(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{})
	require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "t"))
	code, _ := post(t, s.URL, sameOrigin, url.Values{"action": {"idle"}})
	require.Equal(t, http.StatusMethodNotAllowed, code)
	require.Equal(t, 1, s.Stats().Live)
	require.False(t, ask(t, s.Page, "").Actions)
}

func TestAPageOnALoopbackAddressIsServedUnderItsOwnNamesOnly(t *testing.T) {
	s := pagetest.Show(t, &pooldebug.Options{Hosts: []string{"debug.example"}}, mcppool.Options{})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:80": 200, "127.0.0.1:1": 200, "[::1]": 200, "pool.localhost:1": 200, "Debug.Example:443": 200,
		"evil.example": 403, "127.0.0.1.evil.example": 403, "": 403, "10.0.0.1": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, s.URL+"?format=json", nil)
		r.RequestURI, r.Host = "", host
		r = r.WithContext(localAddr(t, s.URL))
		w := httptest.NewRecorder()
		s.Page.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, host)
	}
}

// updates reads a stream of server-sent events.
func updates(t *testing.T, to string) (next func() Snapshot, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(r) //nolint:bodyclose // by end
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	in := bufio.NewReader(res.Body)
	next = func() (s Snapshot) {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		data, ok := strings.CutPrefix(line, "data: ")
		require.True(t, ok, line)
		require.NoError(t, json.Unmarshal([]byte(data), &s))
		line, err = in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "\n", line)
		return s
	}
	return next, func() { cancel(); res.Body.Close() }
}

func TestEventsSendOnlyWhatChanged(t *testing.T) {
	s := pagetest.Show(t, &pooldebug.Options{Interval: 5 * time.Millisecond}, mcppool.Options{})
	require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "t"))
	require.NoError(t, s.Call(t, pagetest.Named("b"), "two", "t"))
	next, end := updates(t, s.URL+"?format=events&sort=id")
	defer end()
	first := next()
	require.Equal(t, "a b", names(first))
	require.Equal(t, "opened, ok, opened, ok", kinds(first))
	quiet := next()
	require.Empty(t, quiet.Sessions)
	require.Empty(t, quiet.Events)
	require.Len(t, quiet.Order, 2)

	require.NoError(t, s.Call(t, pagetest.Named("b"), "two", "t"))
	var changed Snapshot
	for changed = next(); len(changed.Events) == 0; changed = next() {
		require.Empty(t, changed.Events)
	}
	require.Equal(t, "ok", kinds(changed))
	for ; len(changed.Sessions) == 0; changed = next() {
		require.Empty(t, changed.Events)
	}
	require.Equal(t, "b", names(changed))
	require.Equal(t, first.Order, changed.Order)
}

func TestTheNumberOfOpenPagesIsBounded(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{})
	for range 16 {
		next, end := updates(t, s.URL+"?format=events")
		next()
		defer end()
	}
	r, err := http.Get(s.URL + "?format=events")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
}

// stuck is a viewer that takes nothing.
type stuck struct{ *httptest.ResponseRecorder }

func (stuck) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestAStreamEndsWithItsViewer(t *testing.T) {
	page := pooldebug.New(nil)
	page.ServeHTTP(stuck{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/?format=events", nil))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		w := httptest.NewRecorder()
		go func() {
			defer close(ended)
			page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?format=events", nil))
		}()
		time.Sleep(2500 * time.Millisecond)
		cancel()
		<-ended
		require.Equal(t, 3, strings.Count(w.Body.String(), "data: "), "at once, and every second")
	})
}

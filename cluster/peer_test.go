package cluster_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
)

func TestNumberIsFreshOnceWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w cluster.Window
		seen := map[uint64]bool{}
		high := uint64(0)
		for _, step := range rapid.SliceOf(rapid.Uint64Range(0, 200_000)).Draw(t, "numbers") {
			fresh := cluster.Fresh(&w, step)
			old := step == 0 || step+65536 <= high
			if want := !seen[step] && !old; fresh != want {
				t.Fatalf("%d after %d is fresh: %t, want %t", step, high, fresh, want)
			}
			seen[step] = true
			high = max(high, step)
		}
	})
}

func TestReplicaWithAnotherSecretIsRefused(t *testing.T) {
	store, srv := memdir.New(), child(t)
	join(t, store, "a", nil)
	b := join(t, store, "b", func(o *cluster.Options, _ *mcppool.Options) {
		o.Secret, o.RoutesOnly = []byte("another secret, longer"), true
	})
	_, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s"})
	require.ErrorContains(t, err, "Secret")
	require.True(t, mcppool.SafeToRetry(err))
}

// tap serves a node, and keeps what it was sent.
type tap struct {
	mu      sync.Mutex
	handler http.Handler
	bodies  []string
	auth    []string
	drop    bool // the answers of calls that have run
}

func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.bodies, p.auth = append(p.bodies, string(body)), append(p.auth, r.Header.Get("Authorization"))
	h, drop := p.handler, p.drop
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	if drop {
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	h.ServeHTTP(w, r)
}

// tapped is a replica that is reached through a tap.
func tapped(t *testing.T, store *memdir.Store) (replica, *tap, string) {
	t.Helper()
	p := &tap{}
	s := httptest.NewUnstartedServer(p)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.Protocols.SetHTTP1(true)
	s.Start()
	t.Cleanup(s.Close)
	r := join(t, store, "tapped", func(o *cluster.Options, _ *mcppool.Options) {
		o.Listen, o.Advertise = "", s.Listener.Addr().String()
	})
	p.mu.Lock()
	p.handler = r.PeerHandler()
	p.mu.Unlock()
	return r, p, s.URL
}

func TestRequestThatIsReplayedOrChangedRunsNothing(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, p, url := tapped(t, store)
	b := join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	b.note(t, srv, "s", "2")
	require.Len(t, p.bodies, 1)
	body, auth := p.bodies[0], p.auth[0]
	post := func(body, auth string) int {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/mcppool/cluster/1/call", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", auth)
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		res, err := tr.RoundTrip(req)
		require.NoError(t, err)
		defer res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusBadRequest, post(body, auth), "replayed")
	require.Equal(t, http.StatusUnauthorized, post(strings.Replace(body, `"text":"2"`, `"text":"3"`, 1), auth))
	require.Equal(t, http.StatusUnauthorized, post(body, ""))
	text, _ := b.note(t, srv, "s", "4")
	require.Equal(t, "[1 2 4]", text)
}

func TestAnswerThatIsLostIsAnUnknownOutcomeAndNothingIsSentAgain(t *testing.T) {
	store, srv := memdir.New(), child(t)
	a, p, _ := tapped(t, store)
	b := join(t, store, "b", nil)
	a.note(t, srv, "s", "1")
	p.mu.Lock()
	p.drop = true
	p.mu.Unlock()
	_, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s", Args: map[string]any{"text": "2"}})
	require.ErrorIs(t, err, cluster.ErrOwnerLost)
	require.False(t, mcppool.SafeToRetry(err))
	p.mu.Lock()
	p.drop = false
	p.mu.Unlock()
	text, _ := b.note(t, srv, "s", "3")
	require.Equal(t, "[1 2 3]", text)
}

func TestMessageThatIsTooLongIsRefusedBothWays(t *testing.T) {
	store, srv := memdir.New(), child(t)
	small := func(o *cluster.Options, _ *mcppool.Options) { o.MaxMessage = 64 << 10 }
	a, b := join(t, store, "a", nil), join(t, store, "b", small)
	a.note(t, srv, "s", "1")
	_, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "echo", Scope: "s", Args: map[string]any{"text": strings.Repeat("x", 70<<10)}})
	var config *mcppool.ConfigError
	require.ErrorAs(t, err, &config)
	long := strings.Repeat("x", 200<<10)
	a.note(t, srv, "s", long)
	_, err = b.CallTool(t.Context(), srv, mcppool.Call{Tool: "note", Scope: "s", Args: map[string]any{"text": "y"}})
	var remote *cluster.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Contains(t, err.Error(), "MaxMessage")
	res, err := b.CallTool(t.Context(), srv, mcppool.Call{Tool: "echo", Scope: "s", Args: map[string]any{"text": "<a&b>\u2028"}})
	require.NoError(t, err)
	require.Equal(t, mcp.TextContent{Type: "text", Text: "<a&b>\u2028"}, res.Content[0])
}

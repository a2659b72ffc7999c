package httpconn_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/offering"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is much longer than anything takes that is not waited for.
const soon = 5 * time.Second

// at is the config for a server that is served until the end of the test.
func at(t testing.TB, h http.Handler, era rpc.Era) httpconn.Config {
	t.Helper()
	ts := httptest.NewServer(h)
	web := new(httpconn.Web)
	t.Cleanup(func() {
		web.Close()
		ts.CloseClientConnections()
		ts.Close()
	})
	return httpconn.Config{
		URL: ts.URL, Web: web,
		Config: rpc.Config{
			Era: era, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
			OnPanic: func(v any, _ []byte) { panic(v) },
		},
	}
}

// bothEras is the server that offers everything, in each era.
func bothEras(t testing.TB) map[string]httpconn.Config {
	t.Helper()
	all := make(map[string]httpconn.Config)
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		all[string(era)] = at(t, server.NewStreamableHTTPServer(offering.New()), era)
	}
	return all
}

func dial(t testing.TB, cfg httpconn.Config) *httpconn.Conn {
	t.Helper()
	c, err := httpconn.Dial(within(t, 4*soon), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func say(t testing.TB, c *httpconn.Conn, tool string) string {
	t.Helper()
	res, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: tool, Args: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Len(t, res.Content, 1)
	return res.Content[0].(mcp.TextContent).Text
}

func TestAServerAtAURLIsServedInBothEras(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			c, ctx := dial(t, cfg), within(t, soon)
			require.Equal(t, "offering", c.Info().ServerInfo.Name)
			require.Equal(t, cfg.Era == rpc.Modern, mcp.IsModernProtocol(c.Info().ProtocolVersion))
			require.NoError(t, c.Probe(ctx))
			_, ok := c.RSS()
			require.False(t, ok)
			require.Zero(t, c.Pid())

			tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
			require.NoError(t, err)
			require.Len(t, tools.Tools, 2)
			require.NotNil(t, tools.Tools[0].RawInputSchema)
			require.NotEmpty(t, tools.NextCursor)

			m := offers.Of(c, nil)
			resources, err := m.ListResources(ctx, mcp.ListResourcesRequest{})
			require.NoError(t, err)
			require.NotEmpty(t, resources.Resources)
			var read mcp.ReadResourceRequest
			read.Params.URI = offering.URI
			contents, err := m.ReadResource(ctx, read)
			require.NoError(t, err)
			require.Equal(t, "text of "+offering.URI, contents.Contents[0].(mcp.TextResourceContents).Text)
			var get mcp.GetPromptRequest
			get.Params.Name, get.Params.Arguments = "greet", map[string]string{"name": "Ada"}
			prompt, err := m.GetPrompt(ctx, get)
			require.NoError(t, err)
			require.Equal(t, "Hello Ada", prompt.Messages[0].Content.(mcp.TextContent).Text)
			var level mcp.SetLevelRequest
			level.Params.Level = mcp.LoggingLevelWarning
			require.NoError(t, c.SetLevel(ctx, level))
			require.Equal(t, "warning", say(t, c, "level"))
		})
	}
}

func TestASubscriptionAtAURLIsRealUntilItIsEnded(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			c, ctx := dial(t, cfg), within(t, soon)
			var sub mcp.SubscribeRequest
			sub.Params.URI = offering.URI
			require.NoError(t, c.Subscribe(ctx, sub))
			require.Equal(t, offering.URI, say(t, c, "subscribed"))
			var unsub mcp.UnsubscribeRequest
			unsub.Params.URI = offering.URI
			require.NoError(t, c.Unsubscribe(ctx, unsub))
			require.Eventually(t, func() bool { return say(t, c, "subscribed") == "" }, soon, time.Millisecond)
		})
	}
}

func TestAFailedConnectTellsNothingOfTheURL(t *testing.T) {
	cfg := at(t, http.NotFoundHandler(), rpc.Auto)
	cfg.URL = "http://user:secret@127.0.0.1:1/?token=secret"
	_, err := httpconn.Dial(within(t, soon), cfg)
	var failed *rpc.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "connect", failed.Phase)
	require.NotContains(t, failed.Error(), "secret")
}

// modern is a modern server: answers are results by method.
func modern(answers func(method string, params map[string]json.RawMessage) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
			Params map[string]json.RawMessage
		}
		if json.NewDecoder(r.Body).Decode(&req) != nil || req.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"supportedVersions":["2026-07-28"],"capabilities":{}}`
		if req.Method != "server/discover" {
			result = answers(req.Method, req.Params)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": json.RawMessage(result)})
	})
}

func TestACallAtAURLGoesOnWhenItIsAskedForInput(t *testing.T) {
	calls := 0
	cfg := at(t, modern(func(_ string, params map[string]json.RawMessage) string {
		calls++
		if params["requestState"] == nil {
			return `{"resultType":"input_required","requestState":"s","inputRequests":{"r":{"method":"roots/list"}}}`
		}
		text, _ := json.Marshal(string(params["inputResponses"]))
		return `{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`
	}), rpc.Modern)
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///x"}}, nil }
	require.Equal(t, `{"r":{"roots":[{"uri":"file:///x"}]}}`, say(t, dial(t, cfg), "t"))
	require.Equal(t, 2, calls)
}

func TestToolsAtAURLWhoseHeadersAreWrongAreLeftOutByName(t *testing.T) {
	cfg := at(t, modern(func(string, map[string]json.RawMessage) string {
		return `{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"no good"}}}},{"name":"b","inputSchema":{"type":"object","properties":[]}}]}`
	}), rpc.Modern)
	list, err := dial(t, cfg).ListTools(within(t, soon), mcp.ListToolsRequest{})
	require.NoError(t, err)
	require.Len(t, list.Tools, 1)
	require.Equal(t, "b", list.Tools[0].Name)
	require.Len(t, list.Skipped, 1)
	require.Equal(t, "a", list.Skipped[0].Name)
}

func TestALossIsKnownByItsError(t *testing.T) {
	require.True(t, httpconn.IsLost(transport.NewError(transport.ErrTransportClosed)))
	require.True(t, httpconn.IsLost(&rpc.NotSentError{Err: rpc.ErrLost}))
	require.False(t, httpconn.IsLost(&rpc.Error{}))
	require.False(t, httpconn.IsLost(context.Canceled))
}

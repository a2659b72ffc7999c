package mcpconn_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/offering"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/rpc"
)

func TestInfoIsWhatTheServerSaidOfItself(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			info := dial(t, cfg).Info()
			require.Equal(t, "offering", info.ServerInfo.Name)
			require.Equal(t, "1.2.3", info.ServerInfo.Version)
			require.Equal(t, offering.Instructions, info.Instructions)
			require.Equal(t, cfg.Era == rpc.Modern, mcp.IsModernProtocol(info.ProtocolVersion))
			require.True(t, info.Capabilities.Resources.Subscribe)
		})
	}
}

func TestEverythingThatAServerOffersIsReached(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			c, ctx := dial(t, cfg), within(t, soon)
			m := offers.Of(c, nil)

			var list mcp.ListResourcesRequest
			var uris []string
			pages := 0
			for more := true; more; pages++ {
				page, err := m.ListResources(ctx, list)
				require.NoError(t, err)
				for _, r := range page.Resources {
					uris = append(uris, r.URI)
				}
				list.Params.Cursor = page.NextCursor
				more = page.NextCursor != ""
			}
			require.Greater(t, pages, 1)
			require.Contains(t, uris, offering.URI)
			require.Len(t, uris, 4)

			templates, err := m.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
			require.NoError(t, err)
			require.Equal(t, "note://{n}", templates.ResourceTemplates[0].URITemplate.Raw())

			var read mcp.ReadResourceRequest
			read.Params.URI = offering.URI
			contents, err := m.ReadResource(ctx, read)
			require.NoError(t, err)
			require.Equal(t, "text of "+offering.URI, contents.Contents[0].(mcp.TextResourceContents).Text)

			prompts, err := m.ListPrompts(ctx, mcp.ListPromptsRequest{})
			require.NoError(t, err)
			require.Equal(t, "greet", prompts.Prompts[0].Name)

			var get mcp.GetPromptRequest
			get.Params.Name, get.Params.Arguments = "greet", map[string]string{"name": "Ada"}
			prompt, err := m.GetPrompt(ctx, get)
			require.NoError(t, err)
			require.Equal(t, "Hello Ada", prompt.Messages[0].Content.(mcp.TextContent).Text)

			var complete mcp.CompleteRequest
			complete.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: "greet"}
			complete.Params.Argument = mcp.CompleteArgument{Name: "name", Value: "A"}
			completed, err := m.Complete(ctx, complete)
			require.NoError(t, err)
			require.Equal(t, []string{"Ada"}, completed.Completion.Values)

			tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
			require.NoError(t, err)
			require.NotEmpty(t, tools.NextCursor)
			require.Empty(t, say(t, c, "subscribed", `{}`))
		})
	}
}

func TestAJSONRPCErrorArrivesWhole(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		c, ctx := dial(t, refuses(t, era)), within(t, soon)
		m := offers.Of(c, nil)
		check := func(method string, err error) {
			t.Helper()
			var answer *rpc.Error
			require.ErrorAs(t, err, &answer)
			require.Equal(t, -32050, answer.Code)
			require.Equal(t, "no "+method, answer.Message)
			require.JSONEq(t, `[1,2]`, string(answer.Data))
		}
		_, err := m.ListResources(ctx, mcp.ListResourcesRequest{})
		check("resources/list", err)
		_, err = m.ReadResource(ctx, mcp.ReadResourceRequest{})
		check("resources/read", err)
		_, err = m.GetPrompt(ctx, mcp.GetPromptRequest{})
		check("prompts/get", err)
		_, err = c.CallTool(ctx, rpc.ToolCall{Tool: "t"})
		check("tools/call", err)
		method := map[rpc.Era]string{rpc.Legacy: "resources/subscribe", rpc.Modern: "subscriptions/listen"}[era]
		check(method, c.Subscribe(ctx, mcp.SubscribeRequest{}))
	}
}

func TestTheLogLevelHoldsForAllLaterRequests(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		c := dial(t, full(t, era))
		for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelWarning, mcp.LoggingLevelDebug} {
			var req mcp.SetLevelRequest
			req.Params.Level = level
			require.NoError(t, c.SetLevel(within(t, soon), req))
			require.Equal(t, string(level), say(t, c, "level", `{}`), era)
		}
	}
}

// updates is a Notification handler that passes on the URIs of changed
// resources.
func updates(to chan<- string) func(mcp.JSONRPCNotification) {
	return func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/resources/updated" {
			to <- fmt.Sprint(n.Params.AdditionalFields["uri"])
		}
	}
}

func TestASubscriptionIsRealUntilItIsEnded(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			told := make(chan string, 8)
			cfg.Handlers.Notification = updates(told)
			c, ctx := dial(t, cfg), within(t, 2*soon)
			var sub mcp.SubscribeRequest
			var unsub mcp.UnsubscribeRequest
			for _, uri := range []string{offering.URI, "note://2"} {
				sub.Params.URI = uri
				require.NoError(t, c.Subscribe(ctx, sub))
			}
			require.Equal(t, offering.URI+" note://2", say(t, c, "subscribed", `{}`))
			require.Equal(t, "false", say(t, c, "touch", `{"uri":"note://3"}`))
			require.Equal(t, "true", say(t, c, "touch", `{"uri":"note://2"}`))
			require.Equal(t, "note://2", <-told)

			unsub.Params.URI = "note://2"
			require.NoError(t, c.Unsubscribe(ctx, unsub))
			require.Eventually(t, func() bool { return say(t, c, "subscribed", `{}`) == offering.URI }, soon, time.Millisecond)
			require.Equal(t, "false", say(t, c, "touch", `{"uri":"note://2"}`))
			require.Empty(t, told)
		})
	}
}

func TestSubscribingTwiceIsOneStreamOnAModernConnection(t *testing.T) {
	c := dial(t, full(t, rpc.Modern))
	var sub mcp.SubscribeRequest
	sub.Params.URI = offering.URI
	for range 2 {
		require.NoError(t, c.Subscribe(within(t, soon), sub))
	}
	require.Equal(t, offering.URI, say(t, c, "subscribed", `{}`))
	var unsub mcp.UnsubscribeRequest
	unsub.Params.URI = offering.URI
	for range 2 {
		require.NoError(t, c.Unsubscribe(within(t, soon), unsub))
	}
	require.Eventually(t, func() bool { return say(t, c, "subscribed", `{}`) == "" }, soon, time.Millisecond)
	require.NoError(t, c.Subscribe(within(t, soon), sub), "again")
}

func TestSubscriptionThatTheServerDoesNotGrantIsAnError(t *testing.T) {
	cfg := child(t, "MCPCONN_STREAMING=1")
	cfg.Era = rpc.Modern
	c := dial(t, cfg)
	var sub mcp.SubscribeRequest
	sub.Params.URI = "granted"
	require.NoError(t, c.Subscribe(within(t, soon), sub))
	sub.Params.URI = "none"
	for range 2 {
		require.ErrorContains(t, c.Subscribe(within(t, soon), sub), "does not tell")
	}
}

func TestSubscriptionThatTheServerEndsCanBeMadeAgain(t *testing.T) {
	acks := make(chan struct{}, 64)
	cfg := child(t, "MCPCONN_STREAMING=1")
	cfg.Era = rpc.Modern
	cfg.Handlers.Notification = func(mcp.JSONRPCNotification) { acks <- struct{}{} }
	c := dial(t, cfg)
	var sub mcp.SubscribeRequest
	sub.Params.URI = "short"
	for range 3 {
		if err := c.Subscribe(within(t, soon), sub); err != nil {
			require.ErrorContains(t, err, "ended the subscription")
		}
		<-acks // the stream is a new one each time, once the last is known to have ended
		require.Eventually(t, func() bool { return c.Streams() == 0 }, soon, time.Millisecond)
	}
}

func TestAModernServerIsAskedToTellWhenItsToolsChange(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		told := make(chan string, 8)
		cfg := full(t, era)
		cfg.Handlers.Notification = func(n mcp.JSONRPCNotification) { told <- n.Method }
		c := dial(t, cfg)
		if era == rpc.Modern {
			require.Equal(t, mcp.MethodNotificationSubscriptionsAcknowledged, <-told)
		}
		say(t, c, "addtool", `{}`)
		require.Equal(t, mcp.MethodNotificationToolsListChanged, <-told, era)
	}
}

func TestCloseEndsASubscriptionThatIsAwaited(t *testing.T) {
	cfg := full(t, rpc.Modern)
	var first atomic.Bool
	entered, leave := make(chan struct{}), make(chan struct{})
	cfg.Handlers.Notification = func(mcp.JSONRPCNotification) {
		if first.CompareAndSwap(false, true) { // the acknowledgement waits behind this
			close(entered)
			<-leave
		}
	}
	c, err := mcpconn.Dial(within(t, soon), cfg)
	require.NoError(t, err)
	<-entered
	result := make(chan error, 1)
	go func() {
		var sub mcp.SubscribeRequest
		sub.Params.URI = offering.URI
		result <- c.Subscribe(within(t, 4*soon), sub)
	}()
	require.Eventually(t, func() bool { return say(t, c, "subscribed", `{}`) != "" }, soon, time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	require.Error(t, <-result)
	close(leave)
	require.NoError(t, <-closed)
}

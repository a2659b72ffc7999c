package mcppool_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// serveRaw is a server by hand, for what mcp-go's doesn't send. It answers a
// call with its arguments: the member "result" as it is, after the messages in
// "before". %TOKEN% in those is the call's progress token.
func serveRaw() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					Before []json.RawMessage `json:"before"`
					Result json.RawMessage   `json:"result"`
				} `json:"arguments"`
				Meta struct {
					ProgressToken any `json:"progressToken"`
				} `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &req) != nil || req.ID == nil {
			continue
		}
		result := `{"protocolVersion":"2025-06-18","serverInfo":{"name":"raw","version":"1"},"capabilities":{"tools":{}}}`
		switch req.Method {
		case "server/discover":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}`+"\n", req.ID)
			continue
		case "tools/list":
			result = `{"tools":[{"name":"t","inputSchema":{"type":"object","anyOf":[{"required":["a"]}],"x":12345678901234567890}},` +
				`{"name":"odd","inputSchema":7},{"inputSchema":{}}]}`
		case "tools/call":
			result = string(req.Params.Arguments.Result)
			for _, n := range req.Params.Arguments.Before {
				var m map[string]any
				_ = json.Unmarshal(n, &m)
				if params, ok := m["params"].(map[string]any); ok && params["progressToken"] == "%TOKEN%" {
					params["progressToken"] = req.Params.Meta.ProgressToken
				}
				b, _ := json.Marshal(m)
				fmt.Printf("%s\n", b)
			}
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result)
	}
}

// answered makes the raw server answer with result.
func answered(t *testing.T, p *mcppool.Pool, result string, call mcppool.Call, before ...string) *mcp.CallToolResult {
	t.Helper()
	raw := make([]json.RawMessage, 0)
	for _, b := range before {
		raw = append(raw, json.RawMessage(b))
	}
	call.Tool, call.Scope = "t", "s"
	call.Args = map[string]any{"before": raw, "result": json.RawMessage(result)}
	res, err := p.CallTool(t.Context(), real(t, "raw"), call)
	require.NoError(t, err)
	return res
}

func TestProgressArrivesInOrderBeforeItsCallReturns(t *testing.T) {
	p := realPool(t, nil)
	progress := func(token string, n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`, token, n)
	}
	for range 20 {
		var seen []float64
		answered(t, p, `{"content":[]}`, mcppool.Call{OnProgress: func(n mcp.ProgressNotification) {
			seen = append(seen, n.Params.Progress)
		}}, progress("%TOKEN%", 1), progress("p0", 99), progress("%TOKEN%", 2), progress("%TOKEN%", 3))
		require.Equal(t, []float64{1, 2, 3}, seen)
	}
	// Progress that comes late, under the token of a call that is over, reaches nobody.
	answered(t, p, `{"content":[]}`, mcppool.Call{OnProgress: func(mcp.ProgressNotification) {
		t.Error("progress of another call")
	}}, progress("p1", 4))
}

func TestEveryKindOfContentReachesTheCallerUnchanged(t *testing.T) {
	p := realPool(t, nil)
	res := answered(t, p, `{
		"content":[
			{"type":"text","text":"hé \"q\" 日本","annotations":{"priority":0.5},"_meta":{"a":1}},
			{"type":"image","data":"AAEC","mimeType":"image/png"},
			{"type":"audio","data":"AAEC","mimeType":"audio/wav"},
			{"type":"resource_link","uri":"file:///x","name":"x"},
			{"type":"resource","resource":{"uri":"file:///x","text":"body"}},
			{"type":"hologram","light":[1,2]}
		],
		"structuredContent":{"n":9007199254740993},"isError":true,"_meta":{"trace":"t"}}`, mcppool.Call{})
	require.Len(t, res.Content, 6)
	require.Equal(t, "hé \"q\" 日本", res.Content[0].(mcp.TextContent).Text)
	require.Equal(t, "image/png", res.Content[1].(mcp.ImageContent).MIMEType)
	require.Equal(t, "audio/wav", res.Content[2].(mcp.AudioContent).MIMEType)
	require.Equal(t, "file:///x", res.Content[3].(mcp.ResourceLink).URI)
	require.Equal(t, "body", res.Content[4].(mcp.EmbeddedResource).Resource.(mcp.TextResourceContents).Text)
	odd := res.Content[5].(mcppool.UnknownContent)
	require.Equal(t, "hologram", odd.Type)
	again, err := json.Marshal(odd)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"hologram","light":[1,2]}`, string(again))
	require.JSONEq(t, `{"n":9007199254740993}`, string(res.RawStructuredContent))
	require.True(t, res.IsError)
	require.Equal(t, "t", res.Meta.AdditionalFields["trace"])

	only := answered(t, p, `{"structuredContent":{"a":1}}`, mcppool.Call{})
	require.Empty(t, only.Content)
	require.JSONEq(t, `{"a":1}`, string(only.RawStructuredContent))
}

func TestNotificationsOfAServerReachTheHandlerInOrder(t *testing.T) {
	var seen []string
	p := realPool(t, &mcppool.Options{Handlers: mcppool.Handlers{
		Notification: func(from mcppool.Origin, n mcp.JSONRPCNotification) {
			seen = append(seen, from.Scope+" "+n.Method)
		},
	}})
	answered(t, p, `{"content":[]}`, mcppool.Call{OnProgress: func(mcp.ProgressNotification) {}},
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	require.Equal(t, []string{"s notifications/message", "s notifications/tools/list_changed"}, seen)
}

package mcpconn_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/rpc"
)

// oddly runs a legacy server that writes its JSON as PHP does, and offers odd tools.
func oddly() bool {
	if os.Getenv("MCPCONN_ODDLY") == "" {
		return false
	}
	results := map[string]string{
		"initialize":   `{"protocolVersion":"2025-06-18","capabilities":[],"serverInfo":{"name":"odd","version":2}}`,
		"tools/list":   `{"tools":[{"name":"a","inputSchema":{"type":"object","properties":[]}},null,{"name":"b","inputSchema":{"const":9007199254740993},"outputSchema":true,"annotations":[]}]}`,
		"prompts/list": `{"prompts":[{"name":"p","arguments":{}}]}`,
		"prompts/get":  `{"messages":[{"role":"user","content":{"type":"text","text":"t","annotations":[]}}],"_meta":[]}`,
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if in.Decode(&req) != nil {
			return true
		}
		result, known := results[req.Method]
		if req.Method == "tools/call" {
			result, known = req.Params.Name, true // a tool's name is its result
		}
		switch {
		case req.ID == nil:
		case known:
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": json.RawMessage(result)})
		default:
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "error": map[string]any{"code": -32601, "message": "no"}})
		}
	}
}

func TestAServerThatWritesAsPHPDoesIsServed(t *testing.T) {
	c := dial(t, child(t, "MCPCONN_ODDLY=1"))
	require.Equal(t, "2", c.Info().ServerInfo.Version)

	list, err := c.ListTools(within(t, soon), mcp.ListToolsRequest{})
	require.NoError(t, err)
	require.Equal(t, []rpc.SkippedTool{{Reason: "it is null"}}, list.Skipped)
	require.Len(t, list.Tools, 2)
	require.Equal(t, `{"type":"object","properties":{}}`, string(list.Tools[0].RawInputSchema))
	require.Equal(t, `{"const":9007199254740993}`, string(list.Tools[1].RawInputSchema))

	m := offers.Of(c, nil)
	prompts, err := m.ListPrompts(within(t, soon), mcp.ListPromptsRequest{})
	require.NoError(t, err)
	require.Len(t, prompts.Prompts, 1)
	prompt, err := m.GetPrompt(within(t, soon), mcp.GetPromptRequest{})
	require.NoError(t, err)
	require.Equal(t, "t", prompt.Messages[0].Content.(mcp.TextContent).Text)

	require.Equal(t, "t", say(t, c, `{"content":[{"type":"text","text":"t"}],"_meta":[]}`, `{}`))
	require.Equal(t, "done", say(t, c, `{"toolResult":"done"}`, `{}`))
	_, err = c.CallTool(within(t, soon), rpc.ToolCall{Tool: `{"content":5}`})
	require.EqualError(t, err, "the server's answer can't be understood: content is no array")
}

package toolbox_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

func TestToolsTakeTheFormsThatModelAPIsWant(t *testing.T) {
	for _, c := range []struct {
		spec              string // as a server sends it
		openAI, anthropic string
	}{
		{
			`{"name":"search","description":"Finds.","inputSchema":{"type":"object","properties":{"q":{"type":"string","enum":["a"]}},"required":["q"],"additionalProperties":false}}`,
			`{"type":"function","function":{"name":"mcp__s__search","description":"Finds.","parameters":{"type":"object","properties":{"q":{"type":"string","enum":["a"]}},"required":["q"],"additionalProperties":false}}}`,
			`{"name":"mcp__s__search","description":"Finds.","input_schema":{"type":"object","properties":{"q":{"type":"string","enum":["a"]}},"required":["q"],"additionalProperties":false}}`,
		},
		{
			`{"name":"none","title":"Nothing","inputSchema":{"type":"object"}}`,
			`{"type":"function","function":{"name":"mcp__s__none","description":"Nothing","parameters":{"type":"object","properties":{}}}}`,
			`{"name":"mcp__s__none","description":"Nothing","input_schema":{"type":"object","properties":{}}}`,
		},
		{
			`{"name":"bare","inputSchema":{}}`,
			`{"type":"function","function":{"name":"mcp__s__bare","parameters":{"type":"object","properties":{}}}}`,
			`{"name":"mcp__s__bare","input_schema":{"type":"object","properties":{}}}`,
		},
	} {
		var spec mcp.Tool
		require.NoError(t, json.Unmarshal([]byte(c.spec), &spec))
		f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) { return []mcp.Tool{spec}, nil }}
		set := tools(t, newBox(t, f, nil, "s"))
		openAI, err := json.Marshal(set.OpenAI())
		require.NoError(t, err)
		require.JSONEq(t, "["+c.openAI+"]", string(openAI))
		anthropic, err := json.Marshal(set.Anthropic())
		require.NoError(t, err)
		require.JSONEq(t, "["+c.anthropic+"]", string(anthropic))
	}
	raw := toolbox.Tool{Name: "n", Spec: &mcp.Tool{Name: "n", RawInputSchema: json.RawMessage(`{"type":"object","properties":{"a":{}},"anyOf":[{}]}`)}}
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}}, raw.Anthropic()["input_schema"])
	broken := toolbox.Tool{Name: "n", Spec: &mcp.Tool{Name: "n", RawInputSchema: json.RawMessage(`true`)}}
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{}}, broken.Anthropic()["input_schema"])
}

func TestNoToolsAreAnEmptyListRatherThanNull(t *testing.T) {
	b, err := json.Marshal(new(toolbox.ToolSet).OpenAI())
	require.NoError(t, err)
	require.Equal(t, "[]", string(b))
}

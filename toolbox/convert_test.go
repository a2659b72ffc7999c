package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

func boxWith(t *testing.T, f *fakes, tools ...mcp.Tool) *toolbox.Box {
	t.Helper()
	f.list = func(context.Context, string) ([]mcp.Tool, error) { return tools, nil }
	return newBox(t, f, nil, "s")
}

func TestPropertiesUnderNewNamesReachTheServerUnderTheirOwn(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"$filter":{"type":"string"},"body[name]":{"type":"object","properties":{"@id":{}}}}}`)
	for _, listed := range []bool{true, false} {
		f := &fakes{}
		b := boxWith(t, f, mcp.Tool{Name: "t", RawInputSchema: schema})
		if listed {
			set := tools(t, b)
			require.Contains(t, set.Tools[0].Anthropic()["input_schema"].(map[string]any)["properties"], "filter_0c097d40")
			require.Equal(t, toolbox.Change{
				Tool: "mcp__s__t", Path: "/properties/$filter", What: "renamed to filter_0c097d40",
				Why: "the API takes only names of 1 to 64 letters, digits, _, . and -",
			}, set.Changes(toolbox.APIAnthropic)[1])
			require.Empty(t, set.Changes(toolbox.APIOpenAI))
		}
		require.NoError(t, dispatch(t, b, "mcp__s__t", `{"filter_0c097d40":"a","body_name_69902ca2":{"id_c1664cb8":1}}`).Err)
		require.Equal(t, []string{`s t {"$filter":"a","body[name]":{"@id":1}}`}, f.served())
	}
}

func TestWhatAnAPITakesNoMoreOfIsCutOrLeftOutAndSaid(t *testing.T) {
	long := mcp.Tool{Name: "a", Description: strings.Repeat("x", 1025), RawInputSchema: json.RawMessage(`{}`)}
	all := []mcp.Tool{long}
	for i := range 129 {
		all = append(all, mcp.NewTool(fmt.Sprintf("b%03d", i)))
	}
	set := tools(t, boxWith(t, &fakes{}, all...))
	require.Len(t, set.Tools, 130)
	require.Len(t, set.OpenAI(), 128)
	require.Len(t, set.Anthropic(), 130)
	require.Equal(t, []toolbox.Change{
		{Tool: "mcp__s__a", What: "the description was cut", Why: "the API takes 1024 characters"},
		{Tool: "mcp__s__b127", What: "left out", Why: "the API takes 128 tools"},
		{Tool: "mcp__s__b128", What: "left out", Why: "the API takes 128 tools"},
	}, set.Changes(toolbox.APIOpenAI))
	require.Empty(t, set.Changes(toolbox.APIAnthropic))
}

func TestGeminiGetsFunctionDeclarations(t *testing.T) {
	set := tools(t, boxWith(t, &fakes{},
		mcp.Tool{Name: "a", RawInputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":["integer","null"]}},"additionalProperties":false}`)},
		mcp.Tool{Name: "b", Description: "Does b.", RawInputSchema: json.RawMessage(`{"type":"object"}`)}))
	got, err := json.Marshal(set.Gemini())
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"name":"mcp__s__a","description":"mcp__s__a","parameters":{"type":"object","properties":{"n":{"type":"integer","nullable":true}}}},
		{"name":"mcp__s__b","description":"Does b."}]`, string(got))
}

package decode_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/rpc"
)

func TestSchemasKeepTheirBytes(t *testing.T) {
	for _, schema := range []string{
		`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`,
		`{"$ref":"#/$defs/Args","$defs":{"Args":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{}}}}}`,
		`{"type":["object","null"],"definitions":{"x":{"const":1.0}},"x-order":["b","a"]}`,
		`{"type":"object","properties":{"a":{"default":[],"enum":[[],{}],"items":[]}},"required":[],"examples":[{"properties":[]}]}`,
	} {
		list, err := decode.Tools([]byte(`{"tools":[{"name":"t","inputSchema":` + schema + `,"outputSchema":` + schema + `}]}`))
		require.NoError(t, err)
		require.Empty(t, list.Skipped)
		tool := list.Tools[0]
		require.Equal(t, schema, string(tool.RawInputSchema))
		require.Equal(t, schema, string(tool.RawOutputSchema))
		out, err := json.Marshal(tool)
		require.NoError(t, err)
		require.Contains(t, string(out), `"inputSchema":`+schema)
		require.Contains(t, string(out), `"outputSchema":`+schema)
	}
}

func TestWhatIsMendedOfATool(t *testing.T) {
	const object = `{"type":"object"}`
	for tool, want := range map[string]mcp.Tool{
		`{"name":"t"}`:                    {RawInputSchema: json.RawMessage(object)},
		`{"name":"t","inputSchema":null}`: {RawInputSchema: json.RawMessage(object)},
		`{"name":"t","inputSchema":[ ]}`:  {RawInputSchema: json.RawMessage(object)},
		`{"name":"t","inputSchema":{}}`:   {RawInputSchema: json.RawMessage(`{}`)},
		`{"name":"t","inputSchema":` + object + `,"outputSchema":true,"annotations":[],"execution":[],"icons":{}}`: {RawInputSchema: json.RawMessage(object), Execution: &mcp.ToolExecution{}, Icons: []mcp.Icon{}},
		`{"name":"t","inputSchema":{"type":"object", "properties":[],"required":[]}}`:                              {RawInputSchema: json.RawMessage(`{"type":"object", "properties":{},"required":[]}`)},
		`{"name":"t","inputSchema":{"properties":{"a":{"type":"object","properties":[]},"b":[]},"anyOf":[[],{"$defs":[]}],"additionalProperties":[]}}`: {
			RawInputSchema: json.RawMessage(`{"properties":{"a":{"type":"object","properties":{}},"b":{}},"anyOf":[{},{"$defs":{}}],"additionalProperties":{}}`)},
		`{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":"true","title":7}}`: {RawInputSchema: json.RawMessage(`{}`), Annotations: mcp.ToolAnnotation{ReadOnlyHint: mcp.ToBoolPtr(true), Title: "7"}},
		`{"name":"t","inputSchema":{},"description":null,"_meta":[]}`:                   {RawInputSchema: json.RawMessage(`{}`), Meta: &mcp.Meta{AdditionalFields: map[string]any{}}},
	} {
		want.Name = "t"
		list, err := decode.Tools([]byte(`{"tools":[` + tool + `]}`))
		require.NoError(t, err, tool)
		require.Empty(t, list.Skipped, tool)
		require.Equal(t, []mcp.Tool{want}, list.Tools, tool)
	}
}

func TestOneOddToolHidesNoOther(t *testing.T) {
	list, err := decode.Tools([]byte(`{"_meta":{"n":9007199254740993},"nextCursor":5,"tools":[
		null, "x", 7, {}, {"name":" "}, {"name":{"a":1}}, {"name":"in","inputSchema":"x"}, {"name":"out","inputSchema":{},"outputSchema":[1]},
		{"name":"notes","annotations":{"readOnlyHint":{}}}, {"name":"good","inputSchema":{"type":"object"}}]}`))
	require.NoError(t, err)
	require.Len(t, list.Tools, 1)
	require.Equal(t, "good", list.Tools[0].Name)
	require.Equal(t, mcp.Cursor("5"), list.NextCursor)
	require.Equal(t, json.Number("9007199254740993"), list.Meta.AdditionalFields["n"])
	require.Equal(t, []rpc.SkippedTool{
		{Reason: "it is null"},
		{Reason: "invalid JSON at byte 0: not an object"},
		{Reason: "invalid JSON at byte 0: not an object"},
		{Reason: "it has no name"},
		{Name: " ", Reason: "it has no name"},
		{Reason: "name is an object, not a string"},
		{Name: "in", Reason: "inputSchema is no object"},
		{Name: "out", Reason: "outputSchema is no object"},
		{Name: "notes", Reason: "annotations.readOnlyHint is an object, not a boolean"},
	}, list.Skipped)
}

func TestAListThatIsNoneSaysSo(t *testing.T) {
	for raw, want := range map[string]string{
		`[1]`:           "invalid JSON at byte 0: not an object",
		`{"tools":"x"}`: "tools is no array",
		`{"tools":[`:    "invalid JSON at byte 10: unexpected end",
	} {
		_, err := decode.Tools([]byte(raw))
		require.EqualError(t, err, "the server's answer can't be understood: "+want)
	}
	for _, raw := range []string{`{}`, `[]`, `{"tools":null}`, `{"tools":{}}`} {
		list, err := decode.Tools([]byte(raw))
		require.NoError(t, err)
		require.Empty(t, list.Tools)
	}
}

func TestHandshakesOfPHPAreRead(t *testing.T) {
	info, err := decode.Initialize([]byte(`{"protocolVersion":"2025-06-18","capabilities":[],"serverInfo":{"name":"p","version":1.5},"instructions":null,"_meta":[]}`))
	require.NoError(t, err)
	require.Equal(t, mcp.Implementation{Name: "p", Version: "1.5"}, info.ServerInfo)

	info, err = decode.Initialize([]byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":[],"resources":true,"prompts":false,"logging":[],"experimental":[]},"serverInfo":[]}`))
	require.NoError(t, err)
	require.NotNil(t, info.Capabilities.Tools)
	require.NotNil(t, info.Capabilities.Resources)
	require.Nil(t, info.Capabilities.Prompts)

	versions, info, err := decode.Discover([]byte(`{"supportedVersions":"2026-07-28","capabilities":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"2026-07-28"}, versions)
	require.Equal(t, "m", info.ServerInfo.Name)
}

func TestHandshakesThatAreUnclearSayWhatIs(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                        "it names no protocolVersion",
		`{"protocolVersion":"1.0"}`: "it is of a revision of the protocol that isn't known: 1.0",
		`{"protocolVersion":"2025-06-18","capabilities":"x"}`:                           "capabilities is a string, not an object",
		`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":[1]}}}`: "capabilities.tools.listChanged is an array, not a boolean",
		`null`: "invalid JSON at byte 0: not an object",
	} {
		_, err := decode.Initialize([]byte(raw))
		require.EqualError(t, err, "the server's answer can't be understood: "+want, raw)
	}
}

func TestEntriesOfOtherListsThatAreUnclearAreLeftOut(t *testing.T) {
	resources, err := decode.Resources([]byte(`{"resources":[{"uri":"a","name":"n","annotations":[]},{"uri":[1]},{"uri":"b","name":5}]}`))
	require.NoError(t, err)
	require.Len(t, resources.Resources, 2)
	require.Equal(t, "5", resources.Resources[1].Name)
	prompts, err := decode.Prompts([]byte(`{"prompts":[{"name":"p","arguments":{}},7]}`))
	require.NoError(t, err)
	require.Len(t, prompts.Prompts, 1)
	templates, err := decode.Templates([]byte(`{"resourceTemplates":[{"uriTemplate":"a://{n}","name":"n"},{"uriTemplate":[]}]}`))
	require.NoError(t, err)
	require.Len(t, templates.ResourceTemplates, 1)

	read, err := decode.Resource([]byte(`{"contents":[{"uri":"a","text":"t","_meta":{"n":9007199254740993}},{"uri":"b"},{"uri":"c","blob":""}]}`))
	require.NoError(t, err)
	require.Equal(t, []mcp.ResourceContents{
		mcp.TextResourceContents{URI: "a", Text: "t", Meta: map[string]any{"n": json.Number("9007199254740993")}},
		mcp.BlobResourceContents{URI: "c"},
	}, read.Contents)
	_, err = decode.Resource([]byte(`{"contents":[{"uri":"b"}]}`))
	require.ErrorContains(t, err, "a resource has neither text nor blob")
	_, err = decode.Resource([]byte(`{}`))
	require.ErrorContains(t, err, "contents is missing")
}

func TestNumbersKeepTheirValue(t *testing.T) {
	for _, text := range []string{"0", "-1", "1.5", "0.1", "9007199254740992", "1e300", "-0.25", "123456789012345", "0.30000000000000004"} {
		require.IsType(t, 1.0, decode.Value([]byte(text)), text)
	}
	for _, text := range []string{"9007199254740993", "12345678901234567890", "1e999", "0.12345678901234567890", "1e-400"} {
		require.Equal(t, json.Number(text), decode.Value([]byte(text)))
	}
	n := decode.Notification("notifications/message", []byte(`{"data":9007199254740993,"_meta":{"a":1}}`))
	require.Equal(t, map[string]any{"data": json.Number("9007199254740993")}, n.Params.AdditionalFields)
	require.Equal(t, map[string]any{"a": 1.0}, n.Params.Meta)
	require.Empty(t, decode.Notification("x", []byte(`[1]`)).Params.AdditionalFields)
}

func FuzzTools(f *testing.F) {
	f.Add(`{"name":"t","inputSchema":{"properties":[],"anyOf":[[]]}}`)
	f.Add(`{"name":"t","annotations":[],"_meta":[]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, tool string) {
		raw := `{"tools":[` + tool + `,{"name":"good"}]}`
		list, err := decode.Tools([]byte(raw))
		if !json.Valid([]byte(raw)) {
			require.Error(t, err)
			return
		}
		if err != nil || strings.Contains(strings.ToLower(raw[len(`{"tools"`):]), `"tools"`) {
			return // what is fuzzed has left the list
		}
		require.Contains(t, names(list), "good")
		for _, tool := range list.Tools {
			_, err := json.Marshal(tool)
			require.NoError(t, err)
		}
	})
}

func names(list *rpc.ToolList) (all []string) {
	for _, t := range list.Tools {
		all = append(all, t.Name)
	}
	return all
}

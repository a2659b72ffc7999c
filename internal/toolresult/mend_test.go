package toolresult_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/toolresult"
)

func TestWhatIsCertainlyMeantIsRead(t *testing.T) {
	empty := &mcp.Meta{AdditionalFields: map[string]any{}}
	for raw, want := range map[string]*mcp.CallToolResult{
		`{"content":[{"type":"text","text":"a"}],"_meta":[]}`:                        {Result: mcp.Result{Meta: empty}, Content: []mcp.Content{text("a")}},
		`{"content":[{"type":"text","text":"a"}],"_meta":"x"}`:                       {Content: []mcp.Content{text("a")}},
		`{"content":[{"type":"text","text":"a","annotations":[]}]}`:                  {Content: []mcp.Content{mcp.TextContent{Type: "text", Text: "a", Annotated: mcp.Annotated{Annotations: &mcp.Annotations{}}}}},
		`{"content":[{"type":"text","text":"a","_meta":[]}]}`:                        {Content: []mcp.Content{mcp.TextContent{Type: "text", Text: "a", Meta: empty}}},
		`{"content":[{"type":"text","text":"a","annotations":{"audience":"user"}}]}`: {Content: []mcp.Content{mcp.TextContent{Type: "text", Text: "a", Annotated: mcp.Annotated{Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}}}}},
		`{"content":[{"type":"text","text":"a"}],"isError":"true"}`:                  {Content: []mcp.Content{text("a")}, IsError: true},
		`{"content":{"type":"text","text":"a"}}`:                                     {Content: []mcp.Content{text("a")}},
		`{"content":"a\n"}`:                                                          {Content: []mcp.Content{text("a\n")}},
		`{"content":{}}`:                                                             {},
		`{"toolResult":"done"}`:                                                      {Content: []mcp.Content{text("done")}},
		`{"toolResult":{"a":1}}`:                                                     {Content: []mcp.Content{text(`{"a":1}`)}},
		`{"toolResult":[1,2],"isError":true}`:                                        {Content: []mcp.Content{text(`[1,2]`)}, IsError: true},
		`{"toolResult":{"content":[{"type":"text","text":"a"}]}}`:                    {Content: []mcp.Content{text("a")}},
		`{"toolResult":null}`:                                                        {},
		`{"content":[{"type":"text","text":"a"}],"toolResult":{"b":1}}`:              {Content: []mcp.Content{text("a")}},
	} {
		got, err := decoder.Decode([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
}

func TestMetaKeepsItsDigits(t *testing.T) {
	const meta = `{"a":9007199254740993,"b":1.5,"c":[12345678901234567890],"progressToken":9007199254740993}`
	got, err := decoder.Decode([]byte(`{"content":[{"type":"text","text":"x","_meta":` + meta + `}],"_meta":` + meta + `}`))
	require.NoError(t, err)
	for _, m := range []*mcp.Meta{got.Meta, got.Content[0].(mcp.TextContent).Meta} {
		out, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, meta, string(out))
	}
	require.IsType(t, 1.5, got.Meta.AdditionalFields["b"], "what a float64 holds is one")
}

func TestResultsWithTheSameMetaHaveEachTheirOwn(t *testing.T) {
	var d toolresult.Decoder
	raw := []byte(`{"content":[],"_meta":{"s":{"name":"x"}}}`)
	for range 3 {
		got, err := d.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"s": map[string]any{"name": "x"}}, got.Meta.AdditionalFields)
		got.Meta.AdditionalFields["mine"] = 1
		got.Meta.ProgressToken = "t"
	}
}

func TestAModernResultIsCheap(t *testing.T) {
	raw := []byte(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1.0"}},"content":[{"type":"text","text":"` + strings.Repeat("x", 64) + `"}]}`)
	run := func() { _, _ = decoder.Decode(raw) }
	require.LessOrEqual(t, testing.AllocsPerRun(100, run), 7.0)
	require.LessOrEqual(t, bytesPerRun(run), 650)
}

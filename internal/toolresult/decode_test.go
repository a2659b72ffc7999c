package toolresult_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// keep turns an unknown block into text, so that a test sees what was passed.
func keep(typ string, raw json.RawMessage) mcp.Content {
	return mcp.TextContent{Type: "unknown " + typ, Text: string(raw)}
}

// decoder keeps what it doesn't know.
var decoder = toolresult.Decoder{Unknown: keep}

func unknown(typ, raw string) mcp.Content { return keep(typ, json.RawMessage(raw)) }

func text(s string) mcp.Content { return mcp.TextContent{Type: "text", Text: s} }

// requireSame compares Decode with mcp-go wherever that succeeds, and returns
// whether it did.
func requireSame(t *testing.T, raw []byte) bool {
	t.Helper()
	in := json.RawMessage(strings.Clone(string(raw)))
	want, wantErr := mcp.ParseCallToolResult(&in)
	if wantErr == nil && strings.Contains(string(raw), `"toolResult"`) {
		return true // mcp-go takes it for nothing
	}
	got, err := decoder.Decode(raw)
	if wantErr != nil {
		return false
	}
	require.NoError(t, err, "%s", raw)
	require.Equal(t, want, rounded(got), "%s", raw)

	line := append([]byte(`{"jsonrpc":"2.0","result":`), raw...)
	m, err := frame.Parse(append(line, `,"a string longer than most":0,"id":1}`...))
	require.NoError(t, err, "%s", raw)
	got, err = decoder.DecodeScanned(m.Result, m.Long)
	require.NoError(t, err, "%s", raw)
	require.Equal(t, want, rounded(got), "%s", raw)

	// The line that the result came on is overwritten by the next one.
	for i := range m.Result {
		m.Result[i] = '#'
	}
	require.Equal(t, want, got, "the result aliases its line")
	return true
}

// rounded makes floats of the numbers of each _meta that keep their digits.
func rounded(r *mcp.CallToolResult) *mcp.CallToolResult {
	roundMeta(r.Meta)
	for _, c := range r.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			roundMeta(c.Meta)
		case mcp.ImageContent:
			roundMeta(c.Meta)
		case mcp.AudioContent:
			roundMeta(c.Meta)
		case mcp.EmbeddedResource:
			roundMeta(c.Meta)
		}
	}
	return r
}

func roundMeta(m *mcp.Meta) {
	if m != nil {
		m.ProgressToken = round(m.ProgressToken)
		m.AdditionalFields, _ = round(m.AdditionalFields).(map[string]any)
	}
}

func round(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // zero for one that is too small
		return f
	case map[string]any:
		for k := range v {
			v[k] = round(v[k])
		}
	case []any:
		for i := range v {
			v[i] = round(v[i])
		}
	}
	return v
}

func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]byte{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = raw
	}
	return all
}

func TestDecodeEqualsMCPGoOnTheCorpus(t *testing.T) {
	for name, raw := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			require.True(t, requireSame(t, raw), "mcp-go refuses it")
		})
	}
}

// small are results that mcp-go takes.
var small = []string{
	`{"content":[]}`, `{"content":null}`, ` { "content" : [ ] } `, `{"content":[],"isError":true}`, `{"content":[],"isError":false}`, `{"content":[],"isError":null}`,
	`{"content":[{"type":"text","text":"x"}]}`, `{"content":[{"text":"x","type":"text"}]}`, `{"content":[{"type":"text"}]}`, `{"content":[{"type":"text","text":null}]}`,
	`{"content":[{"type":"text","text":"a\n\"b\"\u00e9\ud83d\ude00\ud83d"}]}`, "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xe4\"}]}",
	`{"content":[{"type":"te\u0078t","text":"x"}]}`, `{"content":[{"type":"text","te\u0078t":"x"}]}`, `{"content":[{"type":"text","Text":"x"}]}`, `{"content":[{"type":"text","text":"x","TEXT":"y"}]}`,
	`{"content":[{"type":"text","text":"x","text":"y"}]}`, `{"content":[{"type":"text","text":"x","text":null}]}`, `{"content":[{"type":"text","type":"image","data":"eA==","text":"x"}]}`,
	`{"content":[{"type":"text","text":"x","data":5,"resource":7}]}`, `{"content":[{"type":"text","text":"x","data":"d","mimeType":"m","resource":{"uri":"u","text":"t"}}]}`, `{"content":[{"type":"text","text":"x","other":{"a":[1]}}]}`,
	`{"content":[{"type":"text","text":"x","_meta":{"a":1,"progressToken":"p"}}]}`, `{"content":[{"type":"text","text":"x","_meta":null,"annotations":null}]}`, `{"content":[{"type":"text","text":"x","_meta":{},"_meta":{"a":1}}]}`,
	`{"content":[{"type":"text","text":"x","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}}]}`, `{"content":[{"type":"text","text":"x","annotations":{"priority":0}}]}`,
	`{"content":[{"type":"text","text":"x","annotations":{"priority":0.5},"annotations":{"audience":["user"]}}]}`,
	`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}`, `{"content":[{"type":"image","data":"iVBORw0KGgo","mimeType":"image/x-odd"}]}`, `{"content":[{"type":"image","data":"a\/b","mimeType":"image\/png"}]}`, `{"content":[{"type":"image"}]}`,
	`{"content":[{"type":"image","data":"x","mimeType":null}]}`, `{"content":[{"type":"image","data":"x","text":{"no":"matter"}}]}`,
	`{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},{"type":"audio","data":"x","mimeType":"audio/mpeg","_meta":{"a":[1.5,null]}}]}`,
	`{"content":[{"type":"resource_link","uri":"file:///a","name":"a","title":"A","description":"d","mimeType":"text/plain","size":0,"icons":[]}]}`,
	`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"x\ny"}}]}`, `{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"eA=="}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","blob":"b","text":"t"}}]}`,
	`{"content":[{"type":"resource","resource":{"uri":"u","text":null}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","text":"","mimeType":""}}]}`, `{"content":[{"type":"resource","resource":{"URI":"u","text":"t"}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","text":"t","_meta":{"a":1}}}]}`,
	`{"content":[{"type":"resource","resource":{"uri":"u","uri":"v","text":"t"}}]}`, `{"content":[{"type":"resource","annotations":{"priority":1},"_meta":{"k":"v"},"resource":{"uri":"u","text":"t"}}]}`, `{"content":[{"resource":{"uri":"u","text":"t"},"type":"resource"}]}`,
	`{"content":[{"type":"tool_use","id":"1","name":"n","input":{"a":[1,"x"]}}]}`, `{"content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"x"}],"isError":true,"structuredContent":{"n":12345678901234567890}}]}`,
	`{"content":[],"structuredContent":{"n":9007199254740993,"f":1.50,"s":"a\u00e9","b":[true,false,null,{},[]],"o":{"a":1,"a":2}}}`, `{"content":[],"structuredContent":null}`, `{"content":[],"structuredContent":[1,2]}`, `{"content":[],"structuredContent":"x"}`, `{"content":[],"structuredContent": { "a" : 1 } }`,
	`{"content":[],"structuredContent":{"a":1},"structuredContent":{"b":2}}`, `{"content":[],"structuredContent":-0.0}`, `{"content":[],"structuredContent":1e-400}`,
	`{"content":[],"_meta":{"a":{"b":[1,2.5]},"progressToken":7}}`, `{"content":[],"_meta":null}`, `{"content":[],"_meta":{}}`, `{"content":[],"_meta":{"a":1},"_meta":{"b":2}}`,
	`{"content":[],"resultType":"complete"}`, `{"content":[],"resultType":null}`, `{"content":[],"resultType":"odd\n"}`, `{"content":[],"requestState":"abc"}`, `{"content":[],"requestState":null}`,
	`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"},"e":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`, `{"resultType":"input_required"}`, `{"content":[],"inputRequests":null}`, `{"content":[],"inputRequests":{}}`,
	`{"content":[],"isError":true,"isError":false}`, `{"content":[],"isError":true,"isError":null}`, `{"content":[],"_meta":{"progressToken":1},"_meta":{"b":2}}`, `{"content":[],"_meta":{"a":1},"_meta":null}`,
	`{"content":[],"resultType":"a","resultType":"b"}`, `{"content":[],"requestState":"a","requestState":"b"}`, `{"content":[],"requestState":"a","requestState":null}`,
	`{"content":[],"inputRequests":{"a":{"method":"roots/list"}},"inputRequests":{"b":{"method":"roots/list"}}}`, `{"content":[],"inputRequests":{"a":{"method":"roots/list"}},"inputRequests":null}`,
	`{"content":[{"type":"resource","resource":{"uri":"u","text":"t"},"resource":{"uri":"v","blob":"b"}}]}`, `{"content":[{"type":"resource","resource":{"uri":"u","text":"t","blob":5}}]}`,
	`{"Content":[{"type":"text","text":"x"}]}`, `{"content":[{"type":"text","text":"x"}],"CONTENT":[{"type":"text","text":"y"}]}`, `{"content":[{"type":"text","text":"x"}],"content":[]}`, `{"content":[{"type":"text","text":"x"}],"content":null}`,
	`{"content":[],"ISERROR":true}`, `{"content":[],"isError":true,"iserror":false}`, `{"content":[],"i\u0073Error":true}`, `{"content":[],"iſError":true}`, `{"content":[],"\u017ftructuredContent":1}`, `{"content":[],"toolResult":{"a":1},"ttlMs":5,"isErrors":7}`, `{"content":[],"é":1}`,
}

func TestDecodeEqualsMCPGoOnSmallResults(t *testing.T) {
	for _, raw := range small {
		require.True(t, requireSame(t, []byte(raw)), "mcp-go refuses %s", raw)
	}
}

func TestDecodeSucceedsWhereMCPGoFails(t *testing.T) {
	result := func(content ...mcp.Content) *mcp.CallToolResult { return &mcp.CallToolResult{Content: content} }
	structured := func(raw string, v any) *mcp.CallToolResult {
		return &mcp.CallToolResult{StructuredContent: v, RawStructuredContent: json.RawMessage(raw)}
	}
	for _, c := range []struct {
		name, raw string
		want      *mcp.CallToolResult
	}{
		{"no content", `{}`, result()},
		{"no content, but an error", `{"isError":true}`, &mcp.CallToolResult{IsError: true}},
		{"no content, but structured", `{"structuredContent":{"a":1}}`, structured(`{"a":1}`, map[string]any{"a": 1.0})},
		{"a type from the future", `{"content":[{"type":"text","text":"a"},{"type":"video","url":"u"},{"type":"text","text":"b"}]}`, result(text("a"), unknown("video", `{"type":"video","url":"u"}`), text("b"))},
		{"keys of another case", `{"content":[{"TYPE":"video"}]}`, result(unknown("video", `{"TYPE":"video"}`))},
		{"no type", `{"content":[{"text":"a"}]}`, result(unknown("", `{"text":"a"}`))},
		{"a type that is no string", `{"content":[{"type":1,"text":"a"}]}`, result(unknown("", `{"type":1,"text":"a"}`))},
		{"no object", `{"content":[null, "x" ,[1],{"type":"text","text":"a"}]}`, result(unknown("", `null`), unknown("", `"x"`), unknown("", `[1]`), text("a"))},
		{"a text that is a number", `{"content":[{"type":"text","text":5},{"type":"text","text":"a"}]}`, result(unknown("text", `{"type":"text","text":5}`), text("a"))},
		{"a resource without URI", `{"content":[{"type":"resource","resource":{"text":"t"}}]}`, result(unknown("resource", `{"type":"resource","resource":{"text":"t"}}`))},
		{"a resource without contents", `{"content":[{"type":"resource","resource":{"uri":"u"}}]}`, result(unknown("resource", `{"type":"resource","resource":{"uri":"u"}}`))},
		{"a resource left out", `{"content":[{"type":"resource"}]}`, result(unknown("resource", `{"type":"resource"}`))},
		{"a resource that is null", `{"content":[{"type":"resource","resource":null}]}`, result(unknown("resource", `{"type":"resource","resource":null}`))},
		{"annotations that are none", `{"content":[{"type":"text","text":"a","annotations":{"priority":"high"}}]}`, result(unknown("text", `{"type":"text","text":"a","annotations":{"priority":"high"}}`))},
		{"a number that no float64 holds", `{"content":[],"structuredContent":{"a":1e999,"b":[2,-1e999]}}`, structured(`{"a":1e999,"b":[2,-1e999]}`, map[string]any{"a": nil, "b": []any{2.0, nil}})},
		{"the same next to a duplicate", `{"Content":[],"structuredContent":1e999}`, structured(`1e999`, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := json.RawMessage(c.raw)
			_, err := mcp.ParseCallToolResult(&in)
			require.Error(t, err)
			got, err := decoder.Decode([]byte(c.raw))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestDecodeRefusesWhatIsNoResult(t *testing.T) {
	for raw, want := range map[string]string{
		``:                           "unexpected end",
		`null`:                       "not an object",
		`[]`:                         "not an object",
		`"x"`:                        "not an object",
		`{"content":[]`:              "unexpected end",
		`{"content":[]} x`:           "text after the value",
		`{"content":[{"type":}]}`:    "expected a value",
		`{"structuredContent":[1,}`:  "expected a value",
		`{"content":5}`:              "content is no array",
		`{"content":[],"isError":1}`: "isError is a number, not a boolean",
		`{"resultType":[]}`:          "resultType is an array, not a string",
		`{"requestState":{}}`:        "requestState is an object, not a string",
		`{"inputRequests":{"a":{"method":"odd"}}}`: "there is something in it that isn't known",
	} {
		_, err := decoder.Decode([]byte(raw))
		require.ErrorContains(t, err, want, "%s", raw)
		require.ErrorContains(t, err, "the server's answer can't be understood: ")
	}
}

func TestANilContentLeavesTheBlockOut(t *testing.T) {
	leaves := toolresult.Decoder{Unknown: func(string, json.RawMessage) mcp.Content { return nil }}
	got, err := leaves.Decode([]byte(`{"content":[{"type":"video"},{"type":"text","text":"a"}]}`))
	require.NoError(t, err)
	require.Equal(t, []mcp.Content{text("a")}, got.Content)
}

func TestWithoutUnknownAnUnknownBlockFailsTheResult(t *testing.T) {
	_, err := new(toolresult.Decoder).Decode([]byte(`{"content":[{"type":"video"}]}`))
	require.EqualError(t, err, "the server's answer can't be understood: it has a block that isn't known")
}

func TestUnknownIsCalledOncePerBlockAndMayKeepItsBytes(t *testing.T) {
	line := []byte(`{"content":[{"type":"a"},{"type":"b"}]}`)
	var kept []json.RawMessage
	keeps := toolresult.Decoder{Unknown: func(_ string, raw json.RawMessage) mcp.Content {
		kept = append(kept, raw)
		return nil
	}}
	_, err := keeps.Decode(line)
	require.NoError(t, err)
	clear(line)
	require.Equal(t, []json.RawMessage{json.RawMessage(`{"type":"a"}`), json.RawMessage(`{"type":"b"}`)}, kept)
}

// bytesPerRun returns what f allocates.
func bytesPerRun(f func()) int {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const runs = 10
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / runs
}

func TestASmallResultIsCheap(t *testing.T) {
	raw := []byte(`{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", 64) + `"}]}`)
	decode := func() { _, _ = decoder.Decode(raw) }
	require.LessOrEqual(t, testing.AllocsPerRun(100, decode), 4.0)
	require.LessOrEqual(t, bytesPerRun(decode), 300)
}

func TestALargeStringIsCopiedOnce(t *testing.T) {
	for _, unit := range []string{"x", `a line of text\n`, "é"} {
		body := strings.Repeat(unit, 1<<20/len(unit))
		for _, block := range []string{
			`{"type":"text","text":"` + body + `"}`,
			`{"type":"image","data":"` + body + `","mimeType":"image/png"}`,
			`{"type":"resource","resource":{"uri":"u","text":"` + body + `"}}`,
		} {
			raw := []byte(`{"content":[` + block + `]}`)
			require.LessOrEqual(t, bytesPerRun(func() { _, _ = decoder.Decode(raw) }), len(raw)+len(raw)/20)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, raw := range small {
		f.Add([]byte(raw))
	}
	for _, raw := range corpus(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		valid := json.Valid(raw)
		got, err := decoder.Decode(raw)
		if !valid {
			require.Error(t, err)
		}
		require.Equal(t, err == nil, got != nil)
		requireSame(t, raw)
	})
}

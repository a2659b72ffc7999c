package frame_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/jsonscan"
)

const noOutcome = `{"code":-32603,"message":"the server's response has neither result nor error"}`

// view is a message as the tables write it.
type view struct {
	kind                          frame.Kind
	id                            frame.ID
	rawID                         string
	method, params, result, error string
}

func viewOf(m frame.Message) view {
	return view{m.Kind, m.ID, string(m.RawID), m.Method, string(m.Params), string(m.Result), string(m.Error)}
}

func num(n int64) frame.ID    { return frame.ID{Kind: frame.Integer, Int: n} }
func other(s string) frame.ID { return frame.ID{Kind: frame.Other, Text: s} }

var null = frame.ID{Kind: frame.Null}

var lines = []struct {
	name, line string
	want       view // its kind Junk: an error
}{
	{"a result", `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`, view{frame.Response, num(7), `7`, "", "", `{"content":[]}`, ""}},
	{"an error", `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x"}}`, view{frame.Response, num(7), `7`, "", "", "", `{"code":-1,"message":"x"}`}},
	{"a request", `{"jsonrpc":"2.0","id":"a","method":"roots/list"}`, view{frame.Request, other(`"a"`), `"a"`, "roots/list", "", "", ""}},
	{"a request with params", `{"jsonrpc":"2.0","id":0,"method":"x/y","params":{"a":[1]}}`, view{frame.Request, num(0), `0`, "x/y", `{"a":[1]}`, "", ""}},
	{"a notification", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`, view{kind: frame.Notification, method: "notifications/progress", params: `{"progress":1}`}},
	{"a request with a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, view{kind: frame.Notification, id: null, rawID: "null", method: "ping"}},
	{"members in any order", `{"result":1,"id":7,"jsonrpc":"2.0"}`, view{frame.Response, num(7), `7`, "", "", `1`, ""}},
	{"spaces everywhere", " \t{ \"jsonrpc\" : \"2.0\" , \"id\" : 7 , \"result\" : { } } \r\n", view{frame.Response, num(7), `7`, "", "", `{ }`, ""}},
	{"a byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":7,"result":1}`, view{frame.Response, num(7), `7`, "", "", `1`, ""}},
	{"an unknown member", `{"jsonrpc":"2.0","x":{"id":8},"id":7,"result":1}`, view{frame.Response, num(7), `7`, "", "", `1`, ""}},
	{"a null result", `{"jsonrpc":"2.0","id":7,"result":null}`, view{frame.Response, num(7), `7`, "", "", `null`, ""}},
	{"a null error next to a result", `{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, view{frame.Response, num(7), `7`, "", "", `{}`, ""}},
	{"a null result next to an error", `{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1}}`, view{frame.Response, num(7), `7`, "", "", "", `{"code":1}`}},
	{"an error and a result", `{"jsonrpc":"2.0","id":7,"error":{"code":1},"result":{}}`, view{frame.Response, num(7), `7`, "", "", "", `{"code":1}`}},
	{"neither result nor error", `{"jsonrpc":"2.0","id":7}`, view{frame.Response, num(7), `7`, "", "", "", noOutcome}},
	{"only a null error", `{"jsonrpc":"2.0","id":7,"error":null}`, view{frame.Response, num(7), `7`, "", "", "", noOutcome}},
	{"an error with a null id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}`, view{frame.Response, null, "null", "", "", "", `{"code":-32700}`}},
	{"an error without id", `{"jsonrpc":"2.0","error":{"code":-32700}}`, view{frame.Response, frame.ID{}, "", "", "", "", `{"code":-32700}`}},
	{"an error that is a string", `{"jsonrpc":"2.0","id":7,"error":"oh no"}`, view{frame.Response, num(7), `7`, "", "", "", `"oh no"`}},
	{"a response with a method", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{},"result":{}}`, view{frame.Response, num(7), `7`, "", "", "{}", ""}},
	{"a response without jsonrpc", `{"id":7,"result":{}}`, view{frame.Response, num(7), `7`, "", "", "{}", ""}},
	{"an error without jsonrpc", `{"id":7,"error":{"code":1}}`, view{frame.Response, num(7), `7`, "", "", "", `{"code":1}`}},
	{"a string id that is a number", `{"jsonrpc":"2.0","id":"7","result":1}`, view{frame.Response, num(7), `"7"`, "", "", `1`, ""}},
	{"a float id", `{"jsonrpc":"2.0","id":7.0,"result":1}`, view{frame.Response, num(7), `7.0`, "", "", `1`, ""}},
	{"duplicate members", `{"jsonrpc":"2.0","id":1,"result":1,"id":7,"result":2}`, view{frame.Response, num(7), `7`, "", "", `2`, ""}},
	{"an error taken back", `{"jsonrpc":"2.0","id":7,"error":{"code":1},"result":2,"error":null}`, view{frame.Response, num(7), `7`, "", "", `2`, ""}},
	{"a method taken back", `{"jsonrpc":"2.0","method":"ping","id":7,"method":5}`, view{frame.Response, num(7), `7`, "", "", "", noOutcome}},
	{"escaped keys", `{"jsonrpc":"2.0","\u0069d":7,"r\u0065sult":1}`, view{frame.Response, num(7), `7`, "", "", `1`, ""}},
	{"an escaped method", `{"jsonrpc":"2.0","id":1,"method":"roots\/list"}`, view{frame.Request, num(1), `1`, "roots/list", "", "", ""}},
	{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}", view{frame.Response, num(7), `7`, "", "", "\"\xff\"", ""}},
	{"control characters in strings", "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\x00a\tb\x1f\"}", view{frame.Response, num(7), `7`, "", "", `"\u0000a\u0009b\u001f"`, ""}},
	{"a batch of nothing", `{"jsonrpc":"2.0","id":7,"result":[]}`, view{frame.Response, num(7), `7`, "", "", "[]", ""}},

	{"a blank line", "", view{}},
	{"spaces", " \t\r", view{}},
	{"null", `null`, view{}},
	{"a number", `7`, view{}},
	{"an empty object", `{}`, view{}},
	{"jsonrpc alone", `{"jsonrpc":"2.0"}`, view{}},
	{"a result without id", `{"jsonrpc":"2.0","result":{}}`, view{}},
	{"a result with a null id", `{"jsonrpc":"2.0","id":null,"result":{}}`, view{}},
	{"a null id alone", `{"jsonrpc":"2.0","id":null}`, view{}},
	{"a method that is a number", `{"jsonrpc":"2.0","method":7}`, view{}},
	{"keys of another case", `{"JSONRPC":"2.0","ID":7,"Result":{}}`, view{}},
	{"a batch", `[{"jsonrpc":"2.0","id":7,"result":1}]`, view{}},
	{"a log line", `INFO server started`, view{}},
	{"a JSON log line", `{"level":"info","msg":"started"}`, view{}},
	{"a JSON log line with a method", `{"level":"info","method":"GET","id":"abc","path":"/"}`, view{}},
	{"a JSON log line with an error", `{"level":"warn","id":7,"error":"refused"}`, view{}},
	{"a JSON log line with an id", `{"level":"info","id":7}`, view{}},
	{"a JSON log line with a result", `{"level":"info","id":"job","result":"ok"}`, view{}},
	{"log text in front", `INFO {"jsonrpc":"2.0","id":7,"result":1}`, view{}},
	{"two messages", `{"jsonrpc":"2.0","id":7,"result":1}{"jsonrpc":"2.0","id":8,"result":1}`, view{}},
	{"a truncated message", `{"jsonrpc":"2.0","id":7,"result":{"a"`, view{}},
	{"half a pretty-printed message", `{`, view{}},
	{"a NUL between tokens", "{\"jsonrpc\":\"2.0\",\x00\"id\":7,\"result\":1}", view{}},
	{"bytes", "\xff\xfe\x00", view{}},
}

func TestParse(t *testing.T) {
	for _, c := range lines {
		t.Run(c.name, func(t *testing.T) {
			m, err := frame.Parse([]byte(c.line))
			require.Equal(t, c.want, viewOf(m))
			require.Equal(t, c.want.kind == frame.Junk, err != nil, "%v", err)
		})
	}
}

func TestTheErrorForJunkQuotesNothingOfTheLine(t *testing.T) {
	for _, c := range lines {
		if _, err := frame.Parse([]byte(c.line)); err != nil {
			for word := range strings.FieldsSeq("started refused GET abc server job INFO") {
				require.NotContains(t, strings.Fields(err.Error()), word)
			}
		}
	}
}

func TestKnownMethodsAllocateNothing(t *testing.T) {
	for _, method := range []string{
		"ping", "roots/list", "sampling/createMessage", "elicitation/create",
		"notifications/progress", "notifications/message", "notifications/cancelled",
		"notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/prompts/list_changed", "notifications/elicitation/complete", "notifications/tasks/status",
	} {
		line := []byte(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{}}`)
		m, err := frame.Parse(line)
		require.NoError(t, err)
		require.Equal(t, method, m.Method)
		require.Zero(t, testing.AllocsPerRun(10, func() { m, err = frame.Parse(line) }), method)
	}
	line := []byte(`{"jsonrpc":"2.0","id":123456,"result":{"content":[{"type":"text","text":"x"}]}}`)
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = frame.Parse(line) }), "a response")
}

func TestEqualIDsCompareEqual(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want frame.ID
	}{
		{`7`, num(7)}, {`-7`, num(-7)}, {`0`, num(0)}, {`-0`, num(0)}, {`7.0`, num(7)}, {`7e0`, num(7)}, {`70E-1`, num(7)}, {`"7"`, num(7)}, {`"7.0"`, num(7)},
		{`9223372036854775807`, num(math.MaxInt64)}, {`-9223372036854775808`, num(math.MinInt64)},
		{`9007199254740992.0`, num(1 << 53)}, {`9007199254740994.0`, other(`9007199254740994.0`)},
		{`9223372036854775808`, other(`9223372036854775808`)}, {`7.5`, other(`7.5`)}, {`1e400`, other(`1e400`)},
		{`"abc"`, other(`"abc"`)}, {`""`, other(`""`)}, {`" 7"`, other(`" 7"`)}, {`"7 "`, other(`"7 "`)}, {`"07"`, other(`"07"`)}, {`"+7"`, other(`"+7"`)},
		{`"0x7"`, other(`"0x7"`)}, {`"Inf"`, other(`"Inf"`)}, {`"-Inf"`, other(`"-Inf"`)}, {`"1_0"`, other(`"1_0"`)}, {`"\u0037"`, other(`"\u0037"`)},
		{`true`, other(`true`)}, {`{}`, other(`{}`)}, {`[7]`, other(`[7]`)}, {`null`, null},
	} {
		require.Equal(t, c.want, frame.ParseID([]byte(c.raw)), "%s", c.raw)
	}
	require.Equal(t, frame.ID{Kind: frame.Missing}, frame.ParseID(nil))
}

func TestTrimTakesWhatLineEndingsAndEditorsLeave(t *testing.T) {
	for in, want := range map[string]string{
		"{}": "{}", "{}\r": "{}", "{}\r\n": "{}", "\xef\xbb\xbf{}": "{}", "\xef\xbb\xbf \t{} ": "{}", "\r": "", "": "", "a b": "a b", "\xef\xbb{}": "\xef\xbb{}",
	} {
		require.Equal(t, want, string(frame.Trim([]byte(in))), "%q", in)
	}
}

func TestKindsHaveNames(t *testing.T) {
	require.Equal(t, "junk response request notification",
		strings.Join([]string{frame.Junk.String(), frame.Response.String(), frame.Request.String(), frame.Notification.String()}, " "))
	require.PanicsWithValue(t, "bug: unknown kind of message", func() { _ = frame.Kind(9).String() })
}

func FuzzParse(f *testing.F) {
	for _, c := range lines {
		f.Add([]byte(c.line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := frame.Parse(line)
		require.Equal(t, m.Kind == frame.Junk, err != nil)

		var members map[string]json.RawMessage
		if json.Unmarshal(frame.Trim(line), &members) == nil {
			requireAgrees(t, m, members)
		} else if m.Kind != frame.Junk {
			repairable := false
			for _, c := range line {
				repairable = repairable || c < ' '
			}
			require.True(t, repairable, "accepted, although it isn't JSON")
		}

		for _, several := range []func([]byte, func([]byte)) bool{frame.Batch, frame.Salvage} {
			several(line, func(elem []byte) {
				require.NotEmpty(t, elem)
				require.True(t, json.Valid(elem))
			})
		}
	})
}

// requireAgrees compares a message with its members as encoding/json sees them.
func requireAgrees(t *testing.T, m frame.Message, members map[string]json.RawMessage) {
	t.Helper()
	var method string
	isMethod := string(members["method"]) != "null" && json.Unmarshal(members["method"], &method) == nil
	id := frame.ParseID(members["id"])
	switch m.Kind {
	case frame.Junk:
		require.False(t, members["jsonrpc"] != nil && isMethod && members["result"] == nil && members["error"] == nil)
		require.False(t, members["jsonrpc"] != nil && id.Kind == frame.Integer)
	case frame.Response:
		require.Equal(t, id, m.ID)
		require.Equal(t, string(members["id"]), string(m.RawID))
		require.NotEqual(t, m.Result == nil, m.Error == nil)
		if m.Result != nil {
			require.Equal(t, string(members["result"]), string(m.Result))
			again := jsonscan.NewScanned(m.Result, m.Long)
			require.Equal(t, string(m.Result), string(again.Skip()))
			require.NoError(t, again.End())
		} else if string(m.Error) != noOutcome {
			require.Equal(t, string(members["error"]), string(m.Error))
		}
	default:
		require.True(t, isMethod)
		require.Equal(t, method, m.Method)
		require.Equal(t, id, m.ID)
		require.Equal(t, string(members["id"]), string(m.RawID))
		require.Equal(t, string(members["params"]), string(m.Params))
		require.Nil(t, m.Result)
		require.Nil(t, m.Error)
	}
}

package frame_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/frame"
)

func TestAppendWritesOneLineOfJSON(t *testing.T) {
	broken := []byte("{\r\n\"a\": 1\n}")
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{frame.AppendRequest(nil, 7, "tools/list", nil), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`},
		{frame.AppendRequest(nil, -1, "x", broken), `{"jsonrpc":"2.0","id":-1,"method":"x","params":{  "a": 1 }}`},
		{frame.AppendNotification(nil, "notifications/initialized", nil), `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{frame.AppendNotification(nil, "n", broken), `{"jsonrpc":"2.0","method":"n","params":{  "a": 1 }}`},
		{frame.AppendToolCall(nil, 7, frame.ToolCall{Name: "t"}), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{}}}`},
		{frame.AppendToolCall(nil, 7, frame.ToolCall{Name: "a\"b", Args: broken, Meta: broken}), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{  "a": 1 },"_meta":{  "a": 1 }}}`},
		{frame.AppendToolCall(nil, 7, frame.ToolCall{Name: "t", More: []byte(`"a":1,` + "\n" + `"b":2`)}), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{},"a":1, "b":2}}`},
		{frame.AppendResult(nil, []byte(`"x"`), []byte(`{}`)), `{"jsonrpc":"2.0","id":"x","result":{}}`},
		{frame.AppendResult(nil, []byte("[\r7]"), []byte(`{}`)), `{"jsonrpc":"2.0","id":[ 7],"result":{}}`},
		{frame.AppendResult(nil, nil, broken), `{"jsonrpc":"2.0","id":null,"result":{  "a": 1 }}`},
		{frame.AppendError(nil, []byte(`7.0`), -32601, "no \"x\"", nil), `{"jsonrpc":"2.0","id":7.0,"error":{"code":-32601,"message":"no \"x\""}}`},
		{frame.AppendError(nil, nil, 1, "m", broken), `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":{  "a": 1 }}}`},
	} {
		require.Equal(t, c.want+"\n", string(c.got))
		require.True(t, json.Valid(c.got))
	}
	require.Equal(t, "before\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n", string(frame.AppendNotification([]byte("before\n"), "n", nil)))
}

func TestNamesReadBackAsEncodingJSONWouldWriteThem(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	for _, name := range []string{"", "plain", "q\"b\\s/", "\x00\x1f\x7f\n\r\t\b\f", "é日😀", "\u2028\u2029", "\xff", "a\xe4\xb8b", "\xed\xa0\x80", "\ufffd", all.String()} {
		line := frame.AppendToolCall(nil, 7, frame.ToolCall{Name: name})
		require.Equal(t, 1, strings.Count(string(line), "\n"))
		var got struct{ Params struct{ Name string } }
		require.NoError(t, json.Unmarshal(line, &got))
		want, err := json.Marshal(name)
		require.NoError(t, err)
		var wantName string
		require.NoError(t, json.Unmarshal(want, &wantName))
		require.Equal(t, wantName, got.Params.Name)
		require.NotContains(t, string(line), "\u2028")
	}
}

func TestAToolCallIntoABigEnoughBufferAllocatesNothing(t *testing.T) {
	buf, args := make([]byte, 0, 1024), []byte(`{"a":1}`)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = frame.AppendToolCall(buf[:0], 7, frame.ToolCall{Name: "echo", Args: args}) }))
}

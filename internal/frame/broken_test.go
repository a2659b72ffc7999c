package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/frame"
)

func TestAnswerThatIsNotQuiteJSONIsKnownByItsID(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":NaN}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"x":-Infinity}}`,
		`{"jsonrpc":"2.0","id":"7","result":{"path":"C:\q"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te`,
		`{"id":7,"jsonrpc":"2.0","error":{"code":undefined}}`,
		`{"result":{"x":NaN},"id":7,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","result":{"x":NaN},"id": "7"}`,
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":7,"result":` + "\r",
	} {
		_, err := frame.Parse([]byte(line))
		require.Error(t, err, line)
		id, wrong, ok := frame.Broken([]byte(line))
		require.True(t, ok, line)
		require.EqualValues(t, 7, id, line)
		require.Error(t, wrong)
	}
}

func TestLineThatIsNoAnswerIsNotBroken(t *testing.T) {
	for _, line := range []string{
		``, `{`, `null`, `[1`, `INFO {"id":7,"result":NaN}`, `{"jsonrpc":"2.0","id":7`, `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"result":1,"a":NaN}}`, `{"jsonrpc":"2.0","id":"a","result":NaN}`,
		`{"level":"info","id":7,"msg":NaN}`, `{"jsonrpc":"2.0","result":{"id":7,"x":NaN`, `{"result":NaN,"id":}`,
	} {
		_, _, ok := frame.Broken([]byte(line))
		require.False(t, ok, line)
	}
}

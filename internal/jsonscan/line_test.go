package jsonscan_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

func TestObjectAcceptsObjectsOnly(t *testing.T) {
	for _, text := range []string{`{}`, ` {"a":1}`, "\n{\r\n\"a\":[1,2]}\t"} {
		require.NoError(t, jsonscan.Object([]byte(text)), "%q", text)
	}
	for _, c := range []struct {
		text, want string
	}{
		{``, "invalid JSON at byte 0: unexpected end"},
		{`{"a":`, "invalid JSON at byte 5: unexpected end"},
		{`{} x`, "invalid JSON at byte 3: text after the value"},
		{` []`, "invalid JSON at byte 1: not an object"},
		{`null`, "invalid JSON at byte 0: not an object"},
		{`"{}"`, "invalid JSON at byte 0: not an object"},
		{`nope`, "invalid JSON at byte 1: expected null"},
	} {
		require.EqualError(t, jsonscan.Object([]byte(c.text)), c.want, "%q", c.text)
	}
}

func TestLineReturnsTheSliceItselfWhenItIsOneLine(t *testing.T) {
	text := []byte(`{"a":"x\ny"}`)
	require.Same(t, &text[0], &jsonscan.Line(text)[0])
}

func TestLineReplacesLineBreaksAndLeavesItsInputAlone(t *testing.T) {
	text := []byte("{\r\n  \"a\": \"x\\ny\",\n\n  \"b\": [\r1\n]\n}")
	line := jsonscan.Line(text)
	require.Equal(t, `{    "a": "x\ny",    "b": [ 1 ] }`, string(line))
	require.Equal(t, "{\r\n  \"a\": \"x\\ny\",\n\n  \"b\": [\r1\n]\n}", string(text))
	require.JSONEq(t, string(text), string(line))
	require.Equal(t, `[ ]`, string(jsonscan.Line([]byte("[\r]"))))
	require.Equal(t, `x {   }`, string(jsonscan.AppendLine([]byte("x "), []byte("{\n\r\n}"))))
	require.Equal(t, "\n{ }", string(jsonscan.AppendLine([]byte("\n"), []byte("{\n}"))), "what was there is kept")
}

func TestRepairEscapesControlCharactersInStringsOnly(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\"a\":\"x\ty\"}", `{"a":"x\u0009y"}`},
		{"{\t\"a\\\"\x00\":\t\"\x1f\\\\\"\r}", "{\t\"a\\\"\\u0000\":\t\"\\u001f\\\\\"\r}"},
		{"\"\\u00e9\n\"", `"\u00e9\u000a"`},
	} {
		got := jsonscan.Repair([]byte(c.text))
		require.Equal(t, c.want, string(got))
		require.True(t, json.Valid(got))
	}
	require.False(t, json.Valid(jsonscan.Repair([]byte("\"\t\\\t\""))), "a control character that is itself escaped has no one meaning")
	for _, text := range []string{`{}`, "{\t}", `{`, `{"a":"x`, "{\x00}", "x\"\t\""} {
		require.Nil(t, jsonscan.Repair([]byte(text)), "%q", text)
	}
}

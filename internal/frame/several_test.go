package frame_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/frame"
)

const (
	answer7 = `{"jsonrpc":"2.0","id":7,"result":{"a":"}{"}}`
	answer8 = `{"jsonrpc":"2.0","id":8,"error":{"code":1}}`
	ping    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

func collect(several func([]byte, func([]byte)) bool, line string) (elems []string, ok bool) {
	ok = several([]byte(line), func(elem []byte) { elems = append(elems, string(elem)) })
	return elems, ok
}

func TestBatchGivesEachElement(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{`[]`, nil},
		{"\xef\xbb\xbf [ " + answer7 + ` , ` + ping + " ]\r", []string{answer7, ping}},
		{`[1,null,[2],` + answer8 + `]`, []string{`1`, `null`, `[2]`, answer8}},
		{"[{\"a\":\"\t\"}]", []string{`{"a":"\u0009"}`}},
	} {
		got, ok := collect(frame.Batch, c.line)
		require.True(t, ok, c.line)
		require.Equal(t, c.want, got, c.line)
	}
}

func TestBatchRefusesWhatIsNoArray(t *testing.T) {
	for _, line := range []string{``, `{}`, `[`, `[1,]`, `[INFO] started`, `[1] [2]`, "[\"\t\",]", ping} {
		got, ok := collect(frame.Batch, line)
		require.False(t, ok, line)
		require.Nil(t, got, line)
	}
}

func TestSalvageFindsGluedMessages(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       []string
	}{
		{"two messages", answer7 + answer8, []string{answer7, answer8}},
		{"messages of all kinds", ping + " " + answer7, []string{ping, answer7}},
		{"log text in front", `Loading... 100%` + answer7, []string{answer7}},
		{"braces in the log text", `got {a: {1} "{" ` + answer7, []string{answer7}},
		{"log text behind", answer7 + `done`, []string{answer7}},
		{"log text between", answer7 + ` INFO x ` + answer8, []string{answer7, answer8}},
		{"a JSON log line in front", `{"level":"info","x":{"id":3}}` + answer7, []string{answer7}},
		{"half a message in front", answer7[:20] + answer8, []string{answer8}},
		{"a request that was logged", `received ` + ping, nil},
		{"a request behind a response that was logged", `sent ` + answer7 + ping, []string{answer7}},
		{"a request behind a JSON log line", `{"level":"info"}` + ping, nil},
		{"a request behind half an object", `{ ` + ping, nil},
		{"nothing", `INFO started`, nil},
		{"a blank line", ``, nil},
		{"an object", `INFO {"a":1}`, nil},
	} {
		got, ok := collect(frame.Salvage, c.line)
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, c.want != nil, ok, c.name)
	}
}

func TestSalvageGivesUpOnALineThatLooksLikeAStartOverAndOver(t *testing.T) {
	// Each object that this line opens is wrong only at its end, so that the
	// search for the answer behind them all is quadratic.
	open := func(n int) string { return strings.Repeat(`{"a":[`, n) + strings.Repeat(`"x",`, 5*n) + "!" + answer7 }
	got, _ := collect(frame.Salvage, open(2))
	require.Equal(t, []string{answer7}, got)
	got, _ = collect(frame.Salvage, open(4000))
	require.Nil(t, got)
}

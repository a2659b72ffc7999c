package stdio_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// saying is the arguments with which the hostile server says a line.
func saying(line string) string {
	text, _ := json.Marshal(line)
	return `{"text":` + string(text) + `}`
}

func TestAnErrorWithoutIDThatIsNotAboutReadingFailsNoCall(t *testing.T) {
	for range 20 {
		c := open(t, serverConfig(t, "refusenotes"))
		require.NoError(t, c.Notify(t.Context(), "notifications/initialized", nil))
		require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	}
}

func TestAnErrorWithoutIDFailsACallForTwoCodesAlone(t *testing.T) {
	c := start(t, serverConfig(t))
	for _, code := range []int{-32700, -32600} {
		_, err := call(t.Context(), c, "say", saying(fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"no"}}`, code)))
		require.Equal(t, &stdio.Error{Code: code, Message: "no"}, err)
	}
	for _, code := range []int{-32601, -32602, -32603, -32000, 0} {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"no"}}`, code)
		require.Equal(t, "x", mustCall(t, c, "say", saying(line+"\n"+`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"text":"x"}]}}`)))
	}
}

func TestAnAnswerThatIsNotQuiteJSONFailsItsCallAtOnce(t *testing.T) {
	c := start(t, serverConfig(t))
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"x":NaN}}`,
		`{"jsonrpc":"2.0","id":"$ID","result":{"path":"C:\q"}}`,
		`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te`,
		`{"result":{"x":Infinity},"id":$ID,"jsonrpc":"2.0"}`,
	} {
		var err error
		within(t, soon, func() { _, err = call(t.Context(), c, "say", saying(line)) })
		var unclear *rpc.AnswerError
		require.ErrorAs(t, err, &unclear, line)
		require.Contains(t, unclear.Reason, "invalid JSON at byte")
	}
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	require.Zero(t, c.Stats().Junk)
}

func TestTheLastLinesThatAreNoMessageAreKept(t *testing.T) {
	cfg := serverConfig(t)
	cfg.StderrTail = 4 << 10
	c := start(t, cfg)
	mustCall(t, c, "junk", `{"n":1000}`)
	_, err := call(t.Context(), c, "say", saying("the reason\n"+strings.Repeat("y", 2000)+"\n"+`{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"m"}}`))
	require.Error(t, err)
	tail := c.StdoutTail()
	require.LessOrEqual(t, len(tail), 4<<10)
	require.Contains(t, tail, "no message\nthe reason\nyyy")
	require.NotContains(t, tail, "jsonrpc")

	_, err = call(t.Context(), c, "die", `{}`)
	require.Equal(t, tail, dead(t, err, stdio.ErrExited).StdoutTail)
}

func TestWordsThatMakeNoSenseAreFoundBeforeTheFirstAnswerAlone(t *testing.T) {
	for _, tc := range []struct {
		line, reason string
		sure         bool
	}{
		{"content-length: 52\r\n", "Content-Length framing", true},
		{"Content-Length: 52\r\nContent-Type: application/json\r\n", "Content-Length framing", true},
		{"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": {\n  }\n}", "spreads its messages over several lines", true},
		{"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\n  }\n}", "spreads its messages over several lines", false},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, "an id that it was never given: 1", false},
	} {
		c := open(t, serverConfig(t))
		go func() { _, _ = call(t.Context(), c, "say", saying(tc.line)) }() // it ends with the test
		select {
		case odd := <-c.Odd():
			require.ErrorContains(t, odd.Reason, tc.reason)
			require.Equal(t, tc.sure, odd.Sure)
		case <-time.After(soon):
			t.Fatal("not found: " + tc.line)
		}
		require.Equal(t, "1", mustCall(t, c, "count", `{}`), "the connection lives")

		c = open(t, serverConfig(t))
		mustCall(t, c, "count", `{}`)
		_, err := call(t.Context(), c, "say", saying(tc.line+"\n"+`{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"m"}}`))
		if _, answered := err.(*stdio.Error); !answered {
			require.NoError(t, err)
		}
		require.Empty(t, c.Odd(), "in a server that has answered: "+tc.line)
	}
}

func TestLogsAndHeadersAloneAreNotOdd(t *testing.T) {
	c := start(t, serverConfig(t))
	lines := "{\n  \"level\": \"info\"\n}\n{\"level\":\"info\"}\n[\n]\nlog: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nContent-Type: text\n\n" +
		"Content-Length: 5\nhello\n\n"
	mustCall(t, c, "say", saying(lines+`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"text":"x"}]}}`))
	require.Empty(t, c.Odd())
}

func TestAFailedWriteOfUnknownExtentIsNeverNotSent(t *testing.T) {
	require.True(t, stdio.FailedWriteIsNotSent(true), "where the count is exact nothing went out")
	require.False(t, stdio.FailedWriteIsNotSent(false))
}

func TestAGuestsPanicIsAHandlersAndCloseWaitsForIt(t *testing.T) {
	panics := make(chan any, 1)
	cfg := serverConfig(t)
	cfg.OnPanic = func(v any, _ []byte) { panics <- v }
	c := start(t, cfg)
	done := make(chan struct{})
	require.True(t, c.Go(func() { panic("oh") }, func() { close(done) }))
	<-done
	require.Equal(t, "oh", <-panics)

	ended := make(chan struct{})
	require.True(t, c.Go(func() { <-c.Ending().Done() }, func() { close(ended) }))
	require.NoError(t, c.Close())
	select {
	case <-ended:
	default:
		t.Fatal("not waited for")
	}
	require.False(t, c.Go(func() {}, func() {}))
}

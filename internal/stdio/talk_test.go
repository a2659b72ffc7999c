package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

func TestAnswersAreFoundInWhateverServersPutAroundThem(t *testing.T) {
	for _, traits := range []string{"crlf", "bom", "noise", "blank", "stringid", "floatid", "batch", "glued", "oldlog", "noise,blank,crlf,stringid"} {
		t.Run(traits, func(t *testing.T) {
			c := start(t, serverConfig(t, traits))
			for i := range 3 {
				require.Equal(t, fmt.Sprint(i+1), mustCall(t, c, "count", `{}`))
			}
			require.Equal(t, "hello\nworld", mustCall(t, c, "echo", `{"text":"hello\nworld"}`))
		})
	}
}

func TestConnectionsBeginTheirIDsAtDifferentPlaces(t *testing.T) {
	first, second := stdio.LastID(open(t, serverConfig(t))), stdio.LastID(open(t, serverConfig(t)))
	for _, id := range []int64{first, second} {
		require.Greater(t, id, int64(100e6))
		require.Less(t, id, int64(1<<31-1e9), "a thousand million more fit into 32 bits")
	}
	require.NotEqual(t, first, second)
}

func TestResultsOfAllSizesAreWhole(t *testing.T) {
	c := start(t, serverConfig(t))
	for _, n := range []int{0, 1, 3900, 4096, 5000, 16 << 10, 64 << 10, 100 << 10, 130 << 10, 1 << 20, 10 << 20, 1 << 10, 200 << 10, 1 << 20} {
		want := strings.Repeat("0123456789abcde ", n/16+1)[:n]
		require.Equal(t, want, mustCall(t, c, "big", fmt.Sprintf(`{"n":%d}`, n)))
	}
}

func TestResultsStayAsTheyWereUntilTheyAreReleased(t *testing.T) {
	c := start(t, serverConfig(t))
	var kept []stdio.Answer
	var copies []string
	for i := range 40 {
		a, err := c.Call(t.Context(), stdio.ToolCall{Tool: "big", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i*i*1000))})
		require.NoError(t, err)
		if i%2 == 0 {
			kept, copies = append(kept, a), append(copies, string(a.Result))
		} else {
			a.Release()
		}
	}
	for i := range kept {
		require.Equal(t, copies[i], string(kept[i].Result))
		kept[i].Release()
	}
}

func TestErrorsOfTheServerKeepCodeAndData(t *testing.T) {
	c := start(t, serverConfig(t))
	_, err := call(t.Context(), c, "error", `{}`)
	require.Equal(t, &stdio.Error{Code: -32050, Message: "out of paper", Data: json.RawMessage(`{"tray":2}`)}, err)
}

func TestAnErrorWithoutIDIsTheAnswerToTheOnlyCall(t *testing.T) {
	c := start(t, serverConfig(t, "nullid"))
	_, err := call(t.Context(), c, "echo", `{}`)
	require.Equal(t, &stdio.Error{Code: -32700, Message: "can't read that"}, err)
}

func TestAnErrorWithoutIDFailsNoneOfSeveralCalls(t *testing.T) {
	c := start(t, serverConfig(t, "nullid", "mute"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	go func() {
		_, err := c.Request(ctx, "resources/list", nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { return stdio.Pending(c) == 1 }, 10*time.Second, time.Millisecond)
	go func() {
		_, err := call(ctx, c, "echo", `{}`)
		ended <- err
	}()
	require.Eventually(t, func() bool { return c.Stats().Late == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 2, stdio.Pending(c), "neither has failed")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestJunkIsToldCutAndCounted(t *testing.T) {
	type junk struct {
		line  string
		total int
	}
	told := make(chan junk, 100)
	cfg := serverConfig(t)
	cfg.OnJunk = func(line []byte, total int) { told <- junk{string(line), total} }
	c := start(t, cfg)
	mustCall(t, c, "junk", `{"n":1000}`)
	require.Equal(t, junk{"no message", 1}, <-told)
	require.EqualValues(t, 1000, c.Stats().Junk)
	require.LessOrEqual(t, len(told), 5, "the rate is bounded")
}

func TestEarlyNotificationsAreDelivered(t *testing.T) {
	got := make(chan string, 10)
	cfg := serverConfig(t, "early")
	cfg.OnNotification = func(method string, params json.RawMessage) { got <- method + " " + string(params) }
	start(t, cfg)
	require.Equal(t, `notifications/message {"data":"early","level":"info"}`, <-got)
	require.Equal(t, "notifications/tools/list_changed ", <-got)
}

func TestProgressIsHandledBeforeItsCallReturns(t *testing.T) {
	var seen []string
	cfg := serverConfig(t)
	cfg.OnNotification = func(_ string, params json.RawMessage) {
		time.Sleep(10 * time.Millisecond)
		seen = append(seen, string(params))
	}
	c := start(t, cfg)
	for range 3 {
		seen = nil
		_, err := c.Call(t.Context(), stdio.ToolCall{
			Tool: "notify", Args: json.RawMessage(`{"n":3}`), Meta: json.RawMessage(`{"progressToken":"t1"}`), Progress: true,
		})
		require.NoError(t, err)
		require.Equal(t, []string{
			`{"progressToken":"t1","progress":1}`, `{"progressToken":"t1","progress":2}`, `{"progressToken":"t1","progress":3}`,
		}, seen)
	}
}

func TestTheWaitForProgressEndsWithCtxAndKeepsTheAnswer(t *testing.T) {
	release := make(chan struct{})
	cfg := serverConfig(t)
	cfg.OnNotification = func(string, json.RawMessage) { <-release }
	c := start(t, cfg)
	defer close(release)
	mustCall(t, c, "echo", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	text, err := request(ctx, c, stdio.ToolCall{Tool: "notify", Args: json.RawMessage(`{"n":1}`), Progress: true})
	require.NoError(t, err)
	require.Equal(t, "notified", text)
	require.Error(t, ctx.Err())
}

func TestASlowHandlerDelaysNoAnswerAndListChangedSurvivesTheStorm(t *testing.T) {
	release := make(chan struct{})
	changed := make(chan struct{}, 10)
	cfg := serverConfig(t)
	cfg.OnNotification = func(method string, _ json.RawMessage) {
		<-release
		if method == "notifications/tools/list_changed" {
			changed <- struct{}{}
		}
	}
	c := start(t, cfg)
	mustCall(t, c, "storm", `{"n":50000}`)
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	require.Positive(t, c.Stats().DroppedEvents)
	close(release)
	<-changed
}

func TestAHandlerMayCallTheServerAndPanic(t *testing.T) {
	panics := make(chan any, 1)
	got := make(chan string, 1)
	var c *stdio.Conn
	cfg := serverConfig(t)
	cfg.OnPanic = func(v any, stack []byte) { panics <- v }
	cfg.OnNotification = func(method string, _ json.RawMessage) {
		if method == "notifications/progress" {
			panic("oh")
		}
		text, err := call(context.Background(), c, "echo", `{"text":"from the handler"}`)
		got <- fmt.Sprint(text, err)
	}
	c = start(t, cfg)
	mustCall(t, c, "notify", `{"n":1}`)
	require.Equal(t, "oh", <-panics)
	mustCall(t, c, "storm", `{"n":0}`)
	require.Equal(t, "from the handler<nil>", <-got)
	require.EqualValues(t, 1, c.Stats().Panics)
}

func TestAHandlerThatEndsItsGoroutineEndsNothingElse(t *testing.T) {
	got := make(chan string, 1)
	cfg := serverConfig(t)
	cfg.OnNotification = func(method string, _ json.RawMessage) {
		if method == "notifications/progress" {
			runtime.Goexit()
		}
		got <- method
	}
	cfg.OnRequest = func(_ context.Context, method string, _ json.RawMessage) (any, error) {
		if method == "goexit" {
			runtime.Goexit()
		}
		return "fine", nil
	}
	c := start(t, cfg)
	mustCall(t, c, "notify", `{"n":1}`)
	mustCall(t, c, "storm", `{"n":0}`)
	require.NotEmpty(t, <-got)
	for range 10 { // more than are answered at once
		require.Equal(t, `error {"code":-32603,"message":"the client failed to answer"}`, mustCall(t, c, "ask", `{"method":"goexit"}`))
	}
	require.Equal(t, `result "fine"`, mustCall(t, c, "ask", `{"method":"other"}`))
}

func TestCloseDoesNotWaitForeverForAHandler(t *testing.T) {
	leaves := leavesNothing(t)
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	cfg := serverConfig(t)
	cfg.CloseTimeout = 300 * time.Millisecond
	cfg.OnNotification = func(string, json.RawMessage) { entered <- struct{}{}; <-release }
	c := open(t, cfg)
	mustCall(t, c, "notify", `{"n":1}`)
	<-entered
	within(t, 300*time.Millisecond+soon, func() { require.Equal(t, stdio.ErrHandlerRunning, c.Close()) })
	require.Empty(t, family(t))
	free()
	leaves()
}

func TestRequestsNotificationsAndCallsShareTheConnection(t *testing.T) {
	c := start(t, serverConfig(t))
	require.NoError(t, initialize(t.Context(), c))
	result, err := c.Request(t.Context(), "tools/list", nil)
	require.NoError(t, err)
	require.Contains(t, string(result), `{"inputSchema":{"type":"object"},"name":"echo"}`)
	_, err = c.Request(t.Context(), "no/such", json.RawMessage(`{}`))
	require.Equal(t, &stdio.Error{Code: -32601, Message: "method not found"}, err)
	require.Equal(t, "notifications/initialized", mustCall(t, c, "seen", `{}`))
	require.Zero(t, stdio.Replies(c))
}

func TestCancellationNamesTheIDOnTheWireAndTheHandshakeIsNotCancelled(t *testing.T) {
	c := start(t, serverConfig(t, "mute"))
	for _, method := range []string{"server/discover", "resources/list"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := c.Request(ctx, method, nil)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Equal(t, fmt.Sprintf("notifications/cancelled %d", stdio.LastID(c)), mustCall(t, c, "seen", `{}`))
}

func TestRequestsOfTheServerAreAnsweredDuringACall(t *testing.T) {
	cfg := serverConfig(t)
	cfg.OnRequest = func(_ context.Context, method string, params json.RawMessage) (any, error) {
		switch method {
		case "roots/list":
			return map[string]any{"roots": []any{}}, nil
		case "sampling/createMessage":
			return json.RawMessage(`{"role":"assistant"}`), nil
		case "elicitation/create":
			return nil, errors.New("nobody is there")
		case "panic":
			panic("oh")
		case "unencodable":
			return func() {}, nil
		}
		return nil, &stdio.Error{Code: -32601, Message: "no " + method, Data: json.RawMessage(`[1]`)}
	}
	c := start(t, cfg)
	for method, want := range map[string]string{
		"ping":                   `result {}`,
		"roots/list":             `result {"roots":[]}`,
		"sampling/createMessage": `result {"role":"assistant"}`,
		"elicitation/create":     `error {"code":-32603,"message":"nobody is there"}`,
		"panic":                  `error {"code":-32603,"message":"the client failed to answer"}`,
		"unencodable":            `error {"code":-32603,"message":"json: unsupported type: func()"}`,
		"other":                  `error {"code":-32601,"message":"no other","data":[1]}`,
	} {
		require.Equal(t, want, mustCall(t, c, "ask", `{"method":"`+method+`"}`))
	}
}

func TestServerRequestsWithoutHandlersAreRefused(t *testing.T) {
	c := start(t, serverConfig(t))
	require.Equal(t, `error {"code":-32601,"message":"method not found: roots/list"}`, mustCall(t, c, "ask", `{"method":"roots/list"}`))
}

func TestManyPingsAreAnswered(t *testing.T) {
	c := start(t, serverConfig(t))
	require.Equal(t, "pinged", mustCall(t, c, "pings", `{"n":20000}`))
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	require.Eventually(t, func() bool { return stdio.Replies(c) == 0 }, time.Second, time.Millisecond)
}

func TestAGateThatRefusesKeepsTheCallFromTheServer(t *testing.T) {
	c := start(t, serverConfig(t))
	refusal := errors.New("edited meanwhile")
	var not *stdio.NotSentError
	_, err := request(t.Context(), c, stdio.ToolCall{Tool: "count", Gate: func() error { return refusal }})
	require.ErrorAs(t, err, &not)
	require.Equal(t, refusal, not.Err)

	_, err = request(t.Context(), c, stdio.ToolCall{Tool: "count", Gate: func() error { panic("oh") }})
	require.ErrorAs(t, err, &not)

	text, err := request(t.Context(), c, stdio.ToolCall{Tool: "count", Gate: func() error { return nil }})
	require.NoError(t, err)
	require.Equal(t, "1", text)
}

func TestASlowGateOfAnotherCallHoldsNobodyBeyondTheDeadline(t *testing.T) {
	c := start(t, serverConfig(t))
	release, asked := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		_, err := request(t.Context(), c, stdio.ToolCall{Tool: "count", Gate: func() error { close(asked); <-release; return nil }})
		slow <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := call(ctx, c, "count", `{}`)
	var not *stdio.NotSentError
	require.ErrorAs(t, err, &not)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(release)
	require.NoError(t, <-slow)
	require.Equal(t, "2", mustCall(t, c, "count", `{}`))
}

func TestACallerWhoWritesIsSparedTheGatesOfOthers(t *testing.T) {
	c := start(t, serverConfig(t))
	release := make(chan struct{})
	slow := make(chan error, 1)
	_, err := request(t.Context(), c, stdio.ToolCall{Tool: "echo", Gate: func() error {
		go func() {
			_, err := request(t.Context(), c, stdio.ToolCall{Tool: "echo", Gate: func() error { <-release; return nil }})
			slow <- err
		}()
		for stdio.Pending(c) < 2 {
			runtime.Gosched()
		}
		return nil
	}})
	require.NoError(t, err)
	close(release)
	require.NoError(t, <-slow)
}

func TestWhenAnAnswerAndTheDeadlineTieTheAnswerWins(t *testing.T) {
	c := start(t, serverConfig(t, "fast"))
	mustCall(t, c, "echo", `{}`)
	answered := 0
	for i := range 5000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*time.Microsecond)
		_, err := call(ctx, c, "echo", `{}`)
		cancel()
		if err == nil {
			answered++
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	}
	mustCall(t, c, "echo", `{}`)
	// No answer was thrown away: each that is late belongs to a call that was given up.
	require.Equal(t, c.Stats().Abandoned, c.Stats().Late)
	t.Logf("%d answered, %d given up", answered, c.Stats().Abandoned)
}

func TestACallWhoseCtxHasEndedIsNotSent(t *testing.T) {
	c := start(t, serverConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := call(ctx, c, "count", `{}`)
	var not *stdio.NotSentError
	require.ErrorAs(t, err, &not)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
}

func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	c := start(t, serverConfig(t))
	var wg sync.WaitGroup
	var cancelled, gated atomic.Int64
	for g := range 64 {
		wg.Go(func() {
			for i := range 30 {
				text := strings.Repeat(fmt.Sprintf("%d-%d.", g, i), 1+(g*i)%200)
				r := stdio.ToolCall{Tool: "echo", Args: json.RawMessage(`{"text":"` + text + `"}`)}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				switch i % 5 {
				case 1:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i*g)*time.Microsecond)
				case 2:
					r.Gate = func() error { return nil }
				case 3:
					r.Gate = func() error { return errors.New("no") }
				}
				got, err := request(ctx, c, r)
				cancel()
				var not *stdio.NotSentError
				switch {
				case i%5 == 1 && errors.Is(err, context.DeadlineExceeded):
					cancelled.Add(1)
				case i%5 == 3 && errors.As(err, &not):
					gated.Add(1)
				case err != nil || got != text:
					t.Errorf("%v, %q for %q", err, got, text)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 64*6, gated.Load())
	require.Zero(t, stdio.Pending(c))
}

package mcpconn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/rpc"
)

// inquiring runs a modern server whose tools ask for roots before they answer: as
// often as their name says. It writes each tools/call to the file that its environment
// names, and 3 progress notifications before each result.
func inquiring() bool {
	path := os.Getenv("MCPCONN_INQUIRING")
	if path == "" {
		return false
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name         string
				RequestState string
				Meta         struct{ ProgressToken json.RawMessage } `json:"_meta"`
			}
		}
		if in.Decode(&raw) != nil || json.Unmarshal(raw, &req) != nil {
			return true
		}
		answer := func(member string, v any) {
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, member: v})
		}
		switch req.Method {
		case "server/discover":
			answer("result", json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`))
		case "tools/call":
			log, _ := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			_, _ = log.Write(append(bytes.TrimSpace(raw), '\n'))
			_ = log.Close()
			for n := range 3 {
				if token := req.Params.Meta.ProgressToken; token != nil {
					_ = out.Encode(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": map[string]any{"progressToken": token, "progress": n}})
				}
			}
			var rounds int
			_, _ = fmt.Sscanf(req.Params.Name, "asks %d", &rounds)
			switch done := len(req.Params.RequestState); {
			case done < rounds:
				answer("result", map[string]any{"resultType": "input_required", "requestState": strings.Repeat("s", done+1),
					"inputRequests": map[string]any{"r": map[string]any{"method": "roots/list"}}})
			case strings.HasSuffix(req.Params.Name, "and fails"):
				answer("error", json.RawMessage(`{"code":-32001,"message":"no","data":{"n":9007199254740993}}`))
			default:
				answer("result", json.RawMessage(`{"resultType":"complete","content":[{"type":"text","text":"done"}],"_meta":{"n":9007199254740993}}`))
			}
		}
	}
}

// inquirer is such a server, and the tools/call lines that it has seen.
func inquirer(t testing.TB) (cfg mcpconn.Config, seen func() []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seen")
	cfg = child(t, "MCPCONN_INQUIRING="+path)
	cfg.Era = rpc.Modern
	return cfg, func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func TestACallInSeveralRoundsCarriesItsMetaAndDigitsInEach(t *testing.T) {
	cfg, seen := inquirer(t)
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///x"}}, nil }
	c := dial(t, cfg)
	var progress []float64
	var id int64
	call := rpc.ToolCall{
		Tool: "asks 3", Args: json.RawMessage(`{"n":9007199254740993}`), ID: &id,
		Meta:       &mcp.Meta{AdditionalFields: map[string]any{"n": json.Number("9007199254740993")}},
		OnProgress: func(n mcp.ProgressNotification) { progress = append(progress, n.Params.Progress) },
	}
	res, err := c.CallTool(within(t, soon), call)
	require.NoError(t, err)
	require.Equal(t, json.Number("9007199254740993"), res.Meta.AdditionalFields["n"])
	require.Equal(t, []float64{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, progress)
	require.Len(t, seen(), 4)
	for i, line := range seen() {
		require.Contains(t, line, `"n":9007199254740993,"progressToken"`)
		require.Contains(t, line, `"arguments":{"n":9007199254740993}`)
		require.Equal(t, i > 0, strings.Contains(line, `"inputResponses":{"r":{"roots":[{"uri":"file:///x"}]}}`), line)
	}
	require.Contains(t, seen()[3], fmt.Sprintf(`"id":%d,`, id))

	call.Tool = "asks 1 and fails"
	_, err = c.CallTool(within(t, soon), call)
	var answer *rpc.Error
	require.ErrorAs(t, err, &answer)
	require.Equal(t, `{"n":9007199254740993}`, string(answer.Data))
}

func TestAResultThatAsksForMoreThanThereIsAHandlerForIsTheCallers(t *testing.T) {
	cfg, seen := inquirer(t)
	res, err := dial(t, cfg).CallTool(within(t, soon), rpc.ToolCall{Tool: "asks 1"})
	require.NoError(t, err)
	require.True(t, res.NeedsInput())
	require.Len(t, seen(), 1)
}

func TestRoundsOfACallAreBounded(t *testing.T) {
	cfg, seen := inquirer(t)
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	res, err := dial(t, cfg).CallTool(within(t, soon), rpc.ToolCall{Tool: "asks 1000"})
	require.NoError(t, err)
	require.True(t, res.NeedsInput())
	require.Len(t, seen(), 11)
}

// blocked calls a tool whose handler does what during says and then waits for the end
// of its ctx. It returns the error of the call once the handler has ended too.
func blocked(t *testing.T, ctx context.Context, during func(c *mcpconn.Conn)) error {
	t.Helper()
	var c *mcpconn.Conn
	ended := make(chan struct{})
	cfg, seen := inquirer(t)
	cfg.Handlers.Roots = func(ctx context.Context) ([]mcp.Root, error) {
		defer close(ended)
		during(c)
		select {
		case <-ctx.Done():
		case <-time.After(4 * soon):
			t.Error("the handler's ctx doesn't end")
		}
		return nil, ctx.Err()
	}
	c, err := mcpconn.Dial(within(t, 4*soon), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // some have closed it
	_, err = c.CallTool(ctx, rpc.ToolCall{Tool: "asks 1"})
	<-ended
	require.Len(t, seen(), 1)
	var not *rpc.NotSentError
	require.NotErrorAs(t, err, &not, "%v", err)
	return err
}

func TestDeathWhileAHandlerRunsIsALoss(t *testing.T) {
	err := blocked(t, within(t, 4*soon), func(c *mcpconn.Conn) { kill(t, c) })
	require.ErrorIs(t, err, rpc.ErrLost)
}

func TestCloseWhileAHandlerRunsEndsTheCall(t *testing.T) {
	err := blocked(t, within(t, 4*soon), func(c *mcpconn.Conn) {
		go func() { _ = c.Close() }() // it waits for this handler
	})
	require.ErrorIs(t, err, rpc.ErrLost)
	require.ErrorContains(t, err, "connection closed")
}

func TestDeadlineWhileAHandlerRunsIsTheCtxs(t *testing.T) {
	err := blocked(t, within(t, 200*time.Millisecond), func(*mcpconn.Conn) {})
	require.Equal(t, context.DeadlineExceeded, err)
}

func TestACallEndsWithItsCtxAlthoughItsHandlerDoesNot(t *testing.T) {
	leave := make(chan struct{})
	cfg, _ := inquirer(t)
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { <-leave; return nil, nil }
	c := dial(t, cfg)
	_, err := c.CallTool(within(t, 100*time.Millisecond), rpc.ToolCall{Tool: "asks 1"})
	require.Equal(t, context.DeadlineExceeded, err)
	close(leave)
}

func TestAHandlersErrorIsTextAndNotTheCalls(t *testing.T) {
	for _, failure := range []error{
		&rpc.NotSentError{Err: errors.New("of another call")}, &rpc.Error{Code: 1, Message: "of another server"},
		fmt.Errorf("another is gone: %w", rpc.ErrLost), context.Canceled,
	} {
		cfg, _ := inquirer(t)
		cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return nil, failure }
		_, err := dial(t, cfg).CallTool(within(t, soon), rpc.ToolCall{Tool: "asks 1"})
		require.Equal(t, &rpc.HandlerError{Method: "roots/list", Reason: failure.Error()}, err)
		require.NotErrorIs(t, err, failure)
	}
}

func TestAHandlersPanicIsReportedAndFailsTheCall(t *testing.T) {
	panics := make(chan any, 1)
	cfg, _ := inquirer(t)
	cfg.OnPanic = func(v any, stack []byte) {
		if len(stack) > 0 {
			panics <- v
		}
	}
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { panic("oh") }
	c := dial(t, cfg)
	_, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: "asks 1"})
	require.EqualError(t, err, "the server asked for input: its handler panicked")
	require.Equal(t, "oh", <-panics)
	require.NoError(t, c.Probe(within(t, soon)))
}

func TestAGateThatRefusesALaterRoundIsNotCalledNotSent(t *testing.T) {
	cfg, seen := inquirer(t)
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	no := errors.New("edited meanwhile")
	asked := 0
	_, err := dial(t, cfg).CallTool(within(t, soon), rpc.ToolCall{Tool: "asks 1", Gate: func() error {
		if asked++; asked > 1 {
			return no
		}
		return nil
	}})
	require.Equal(t, no, err)
	require.Len(t, seen(), 1)
}

func TestNoProgressHandlerRunsOnceItsCallHasReturned(t *testing.T) {
	c := dial(t, hostileServer(t))
	for range 20 {
		ctx, cancel := context.WithCancel(within(t, soon))
		var running atomic.Bool
		_, _ = c.CallTool(ctx, rpc.ToolCall{ // it has an answer, or its ctx has ended
			Tool: "notify", Args: json.RawMessage(`{"n":5}`),
			OnProgress: func(n mcp.ProgressNotification) {
				running.Store(true)
				cancel()
				time.Sleep(2 * time.Millisecond)
				running.Store(false)
			},
		})
		require.False(t, running.Load())
		cancel()
	}
}

// TestWhateverTheServerSawAByteOfIsNeverNotSent cuts calls of up to three rounds at any
// of their steps.
func TestWhateverTheServerSawAByteOfIsNeverNotSent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rounds := rapid.IntRange(0, 3).Draw(rt, "rounds")
		step := rapid.IntRange(0, 2*rounds+1).Draw(rt, "step") // gate, handler, gate, ...
		cut := rapid.SampledFrom([]string{"kill", "close", "ctx", "panic", "error"}).Draw(rt, "cut")
		delay := rapid.SampledFrom([]time.Duration{0, 200 * time.Microsecond, 5 * time.Millisecond}).Draw(rt, "delay")

		cfg, seen := inquirer(t)
		cfg.OnPanic = func(any, []byte) {}
		ctx, cancel := context.WithTimeout(context.Background(), 4*soon)
		defer cancel()
		var c *mcpconn.Conn
		steps := 0
		here := func() (err error) {
			if steps++; steps-1 != step {
				return nil
			}
			switch cut {
			case "kill":
				p, _ := os.FindProcess(c.Pid())
				_ = p.Kill() // it lives, unless this is the second time
			case "close":
				go func() { _ = c.Close() }() // that of the test waits for it
			case "ctx":
				cancel()
			case "panic":
				panic("cut")
			default:
				err = &rpc.NotSentError{Err: errors.New("cut")}
			}
			time.Sleep(delay)
			return err
		}
		cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return nil, here() }
		var err error
		if c, err = mcpconn.Dial(ctx, cfg); err != nil {
			rt.Fatal(err)
		}
		_, err = c.CallTool(ctx, rpc.ToolCall{Tool: fmt.Sprintf("asks %d", rounds), Gate: here})
		_ = c.Close() // a killed server's says so
		var not *rpc.NotSentError
		if calls := seen(); errors.As(err, &not) && len(calls) > 0 {
			rt.Fatalf("%v, and the server has seen %q", err, calls)
		} else if err == nil && len(calls) != rounds+1 {
			rt.Fatalf("%d calls for %d rounds", len(calls), rounds)
		}
	})
}

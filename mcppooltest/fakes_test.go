package mcppooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

var srv = mcppool.Server{Name: "city", Command: "no-such-program"}

func say(t testing.TB, pool *mcppool.Pool, call mcppool.Call) string {
	t.Helper()
	res, err := pool.CallTool(t.Context(), srv, call)
	require.NoError(t, err)
	require.Len(t, res.Content, 1)
	return res.Content[0].(mcp.TextContent).Text
}

func TestFakeAnswersEachToolByItsOwnScript(t *testing.T) {
	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{
		"weather": mcppooltest.Text("sunny"),
		"broken":  mcppooltest.Fail("no such street"),
		"refused": mcppooltest.Error(&mcppool.RPCError{Code: -32050, Message: "out of paper"}),
		"greet": func(_ context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("hello " + call.GetString("name", "")), nil
		},
	}}
	pool := mcppooltest.New(t, fakes, nil)
	require.Equal(t, "sunny", say(t, pool, mcppool.Call{Tool: "weather", Scope: "s"}))
	require.Equal(t, "hello Ada", say(t, pool, mcppool.Call{Tool: "greet", Scope: "s", Args: map[string]any{"name": "Ada"}}))
	res, err := pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "broken", Scope: "s"})
	require.NoError(t, err)
	require.True(t, res.IsError)
	var rpc *mcppool.RPCError
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "refused", Scope: "s"})
	require.ErrorAs(t, err, &rpc)
	require.Equal(t, -32050, rpc.Code)
	_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "unknown", Scope: "s"})
	require.ErrorAs(t, err, &rpc)
	require.Equal(t, mcp.INVALID_PARAMS, rpc.Code)
	tools, err := pool.ListTools(t.Context(), srv, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	require.Len(t, tools, 4)
	require.Equal(t, "broken", tools[0].Name)
	require.Equal(t, []string{
		"city#1: connected", "city#1: weather {}", `city#1: greet {"name":"Ada"}`,
		"city#1: broken {}", "city#1: refused {}", "city#1: unknown {}",
	}, fakes.Log())
	calls := fakes.Calls()
	require.Equal(t, "greet", calls[1].Tool)
	require.JSONEq(t, `{"name":"Ada"}`, string(calls[1].Args))
	require.Equal(t, 1, fakes.Dials())
}

func TestFakeDelaysToTheNanosecondInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := &mcppooltest.Fakes{
			Connect: func(ctx context.Context, _ *mcppooltest.Conn) error { return mcppooltest.Sleep(ctx, 2*time.Second) },
			Close:   func(*mcppooltest.Conn) { time.Sleep(3 * time.Second) },
			Tools:   mcppooltest.Tools{"slow": mcppooltest.Delay(time.Minute, mcppooltest.Text("late"))},
		}
		pool := mcppooltest.New(t, fakes, nil)
		begun := time.Now()
		require.Equal(t, "late", say(t, pool, mcppool.Call{Tool: "slow", Scope: "s"}))
		require.Equal(t, 62*time.Second, time.Since(begun))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		_, err := pool.CallTool(ctx, srv, mcppool.Call{Tool: "slow", Scope: "s"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))

		begun = time.Now()
		require.NoError(t, pool.Close())
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestFakeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{
			"crash": mcppooltest.InOrder(mcppooltest.Die(), mcppooltest.Text("up again")),
			"slow":  mcppooltest.Delay(time.Minute, mcppooltest.Text("late")),
		}}
		pool := mcppooltest.New(t, fakes, nil)
		_, err := pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "crash", Scope: "s"})
		require.ErrorIs(t, err, mcppool.ErrSessionLost)
		require.False(t, mcppool.SafeToRetry(err))
		require.Equal(t, "up again", say(t, pool, mcppool.Call{Tool: "crash", Scope: "s"}))
		require.Equal(t, "up again", say(t, pool, mcppool.Call{Tool: "crash", Scope: "s"}))

		begun := time.Now()
		time.AfterFunc(time.Second, func() { fakes.Conns()[1].Die(errors.New("killed")) })
		_, err = pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "slow", Scope: "s"})
		require.ErrorIs(t, err, mcppool.ErrSessionLost)
		require.Equal(t, time.Second, time.Since(begun), "the tool's ctx ends with its connection")
		require.Contains(t, fakes.Log(), "city#2: died: killed")
	})
}

func TestFakeThatDoesNotStart(t *testing.T) {
	reason := errors.New("no licence")
	fakes := &mcppooltest.Fakes{
		Connect: func(_ context.Context, c *mcppooltest.Conn) error {
			if c.ID == 1 {
				return reason
			}
			return nil
		},
		Other: mcppooltest.Text("anything"),
	}
	pool := mcppooltest.New(t, fakes, nil)
	_, err := pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "t", Scope: "s"})
	var start *mcppool.StartError
	require.ErrorAs(t, err, &start)
	require.ErrorIs(t, err, reason)
	require.Equal(t, "anything", say(t, pool, mcppool.Call{Tool: "t", Scope: "s"}))
	require.Len(t, fakes.Conns(), 1)
	require.Equal(t, 2, fakes.Dials())
}

func TestFakeServersDifferAndHaveAState(t *testing.T) {
	fakes := &mcppooltest.Fakes{Connect: func(_ context.Context, c *mcppooltest.Conn) error {
		var notes string
		c.Tools = mcppooltest.Tools{"note": func(_ context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
			notes += call.GetString("text", "")
			return mcp.NewToolResultText(c.Server.Name + " " + notes), nil
		}}
		return nil
	}}
	pool := mcppooltest.New(t, fakes, nil)
	note := func(scope, text string) string {
		return say(t, pool, mcppool.Call{Tool: "note", Scope: scope, Args: map[string]any{"text": text}})
	}
	require.Equal(t, "city a", note("A", "a"))
	require.Equal(t, "city x", note("B", "x"))
	require.Equal(t, "city ab", note("A", "b"))
	require.Len(t, fakes.Conns()[0].Calls(), 2)
	require.Equal(t, 1, fakes.Conns()[0].Peak())
}

func TestFakeTellsItsProgressBeforeItsCallReturns(t *testing.T) {
	var late *mcppooltest.Call
	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{"dig": func(_ context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
		call.Progress(1, 2, "half")
		call.Progress(2, 2, "")
		late = call
		return mcp.NewToolResultText("done"), nil
	}}}
	pool := mcppooltest.New(t, fakes, nil)
	var seen []mcp.ProgressNotificationParams
	say(t, pool, mcppool.Call{Tool: "dig", Scope: "s", OnProgress: func(n mcp.ProgressNotification) { seen = append(seen, n.Params) }})
	late.Progress(3, 2, "after the end")
	require.Equal(t, []mcp.ProgressNotificationParams{{Progress: 1, Total: 2, Message: "half"}, {Progress: 2, Total: 2}}, seen)
	say(t, pool, mcppool.Call{Tool: "dig", Scope: "s"}) // nobody listens
}

func TestFakeAsksItsClient(t *testing.T) {
	fakes := &mcppooltest.Fakes{Tools: mcppooltest.Tools{"ask": func(ctx context.Context, call *mcppooltest.Call) (*mcp.CallToolResult, error) {
		call.Conn.Notify("notifications/message", map[string]any{"data": "about to ask"})
		if _, err := call.Conn.Sample(ctx, mcp.CreateMessageRequest{}); err == nil {
			return nil, errors.New("nobody offers sampling")
		}
		roots, err := call.Conn.Roots(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := call.Conn.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "sure?"}})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(roots[0].URI + " " + string(answer.Action)), nil
	}}}
	var asked []string
	pool := mcppooltest.New(t, fakes, &mcppool.Options{Handlers: mcppool.Handlers{
		Roots: func(_ context.Context, from mcppool.Origin) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///" + from.Scope}}, nil
		},
		Elicitation: func(_ context.Context, from mcppool.Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			asked = append(asked, from.Server+" "+from.Scope+" "+req.Params.Message)
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}, nil
		},
		Notification: func(from mcppool.Origin, n mcp.JSONRPCNotification) {
			asked = append(asked, from.Scope+" "+n.Method+" "+n.Params.AdditionalFields["data"].(string))
		},
	}})
	require.Equal(t, "file:///s accept", say(t, pool, mcppool.Call{Tool: "ask", Scope: "s"}))
	require.Equal(t, []string{"s notifications/message about to ask", "city s sure?"}, asked)
}

func TestFakeAnswersOtherRequests(t *testing.T) {
	fakes := &mcppooltest.Fakes{Request: func(_ context.Context, c *mcppooltest.Conn, method string, params json.RawMessage) (any, error) {
		return map[string]any{"contents": []any{map[string]any{"uri": "a", "text": method + string(params)}}}, nil
	}}
	pool := mcppooltest.New(t, fakes, nil)
	err := pool.Do(t.Context(), srv, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
		res, err := s.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "a"}})
		if err == nil {
			require.Equal(t, `resources/read{"uri":"a"}`, res.Contents[0].(mcp.TextResourceContents).Text)
		}
		return err
	})
	require.NoError(t, err)
}

func TestNewFailsATestThatLeavesACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fakeT{TB: t}
		free := make(chan struct{})
		pool := mcppooltest.New(inner, &mcppooltest.Fakes{Tools: mcppooltest.Tools{
			"deaf": func(context.Context, *mcppooltest.Call) (*mcp.CallToolResult, error) {
				<-free
				return nil, errors.New("too late")
			},
		}}, nil)
		go pool.CallTool(t.Context(), srv, mcppool.Call{Tool: "deaf", Scope: "s"})
		synctest.Wait()
		failed := inner.end()
		require.Contains(t, failed, `the call "city#1: deaf {}" still runs`)
		close(free)
	})
}

func TestNewFailsWithBadOptions(t *testing.T) {
	inner := &fakeT{TB: t}
	pool := mcppooltest.New(inner, nil, &mcppool.Options{AfterConnect: func(context.Context, *mcppool.Session) error { return nil }})
	require.NoError(t, pool.Prewarm(t.Context(), srv, 1))
	require.Empty(t, inner.end(), "all is well")
	require.PanicsWithValue(t, "mcppool: Options.CloseTimeout is negative: a close must end", func() {
		mcppooltest.New(inner, nil, &mcppool.Options{CloseTimeout: -1})
	})
}

func TestNewFailsATestThatLeavesAConnection(t *testing.T) {
	inner := &fakeT{TB: t}
	fakes := new(mcppooltest.Fakes)
	mcppooltest.New(inner, fakes, nil)
	_, err := fakes.Dial(t.Context(), srv) // which is nobody's to close
	require.NoError(t, err)
	require.Contains(t, inner.end(), "connection city#1 was closed 0 times, not once")
}

func TestFakeCountsTheCallsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := &mcppooltest.Fakes{Other: mcppooltest.Delay(time.Second, mcppooltest.Text("done"))}
		pool := mcppooltest.New(t, fakes, nil)
		shared := srv
		shared.Policy = mcppool.Policy{Mode: mcppool.Shared, Concurrent: true}
		ends := make(chan error)
		for range 3 {
			go func() {
				_, err := pool.CallTool(t.Context(), shared, mcppool.Call{Tool: "t"})
				ends <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-ends)
		}
		_, err := pool.CallTool(t.Context(), shared, mcppool.Call{Tool: "t"}) // alone
		require.NoError(t, err)
		say(t, pool, mcppool.Call{Tool: "t", Scope: "s"})
		require.Len(t, fakes.Conns(), 2)
		require.Equal(t, 3, fakes.Conns()[0].Peak())
		require.Equal(t, 1, fakes.Conns()[1].Peak())
	})
}

func TestFakeThatDiesEndsItsCallsAsAClientDoes(t *testing.T) {
	fakes := &mcppooltest.Fakes{Other: mcppooltest.Die()}
	c, err := fakes.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.RawArguments = "t", json.RawMessage("{}")
	_, err = c.CallTool(t.Context(), req)
	require.ErrorIs(t, err, transport.ErrTransportClosed)
	require.EqualError(t, c.Err(), "the server died during t")
}

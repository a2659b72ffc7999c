package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestEmptyScopeConnectsCallsAndClosesEachTime(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	for range 2 {
		require.NoError(t, call(t.Context(), p, stdio, ""))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.Equal(t, []int{1, 1}, f.closed())
	s := p.Stats()
	require.Zero(t, s.Kept)
	require.EqualValues(t, 2, s.Closed[mcppool.ReasonOneShot])
}

func TestOneShotAnswerDoesNotWaitForTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{closeTime: 5 * time.Second}
		p := newPool(t, f, nil)
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, ""))
		require.Zero(t, time.Since(start))
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed(), "its close has begun")
		require.Equal(t, 1, p.Stats().Closing)
	})
}

func TestEachCommandAndEnvironmentHasASessionOfItsOwn(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	withEnv := stdio
	withEnv.Env = map[string]string{"A": "1"}
	for range 2 {
		for _, srv := range []mcppool.Server{stdio, {Command: "another"}, withEnv} {
			require.NoError(t, call(t.Context(), p, srv, "s"))
		}
	}
	require.Len(t, f.all(), 3)
}

func TestScopesKeepTheirStateApart(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	for _, scope := range []string{"A", "B", "A"} {
		require.NoError(t, call(t.Context(), p, stdio, scope))
	}
	require.Len(t, f.all(), 2)
	require.Equal(t, 2, f.all()[0].served())
	require.Equal(t, 1, f.all()[1].served())
}

func TestKeyTellsHowArgumentsAreSplitAndIgnoresTheOrderOfEnv(t *testing.T) {
	label := func(s mcppool.Server) string { return s.String() }
	one := mcppool.Server{Command: "x", Args: []string{"a b"}}
	two := mcppool.Server{Command: "x", Args: []string{"a", "b"}}
	require.NotEqual(t, label(one), label(two))

	ab, ba := map[string]string{}, map[string]string{}
	for i := range 40 { // more than are sorted on the stack, too
		ab[fmt.Sprint(i)] = "v"
		ba[fmt.Sprint(39-i)] = "v"
		require.Equal(t, maps.Equal(ab, ba),
			label(mcppool.Server{Command: "x", Env: ab}) == label(mcppool.Server{Command: "x", Env: ba}))
	}
	require.Equal(t,
		label(mcppool.Server{Command: "x"}),
		label(mcppool.Server{Command: "x", Env: map[string]string{}, Args: []string{}, Header: map[string]string{}}))
	require.NotEqual(t, label(mcppool.Server{Command: "x"}), label(mcppool.Server{Command: "x", Dir: "/"}))
	require.NotEqual(t,
		label(mcppool.Server{Command: "x", Env: map[string]string{"A": "B", "C": "D"}}),
		label(mcppool.Server{Command: "x", Env: map[string]string{"A": "D", "C": "B"}}))
}

func TestHTTPServersAreNeverKept(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	web := mcppool.Server{URL: "https://user:pass@example.com/mcp?token=t"}
	for _, scope := range []string{"", "s"} {
		require.NoError(t, call(t.Context(), p, web, scope))
	}
	for range 100 {
		p.CloseServer(web)
		p.CloseCommand(web)
		p.CloseScope("s")
	}
	require.Zero(t, p.Stats().Kept)
	require.NoError(t, p.Shutdown(t.Context()))
	require.Equal(t, []int{1, 1}, f.closed())
	require.Zero(t, mcppool.Remembered(p))
}

func TestScopeOfEachConversationIsItsOwn(t *testing.T) {
	require.NotEqual(t, mcppool.Scope("project-p1", "thread-a"), mcppool.Scope("project-p1", "thread-b"))
	require.Empty(t, mcppool.Scope("project-p1", ""), "a project alone has no state to share")
	require.NotEmpty(t, mcppool.Scope("", "thread-a"))
	require.NotEqual(t, mcppool.Scope("a:b", "c"), mcppool.Scope("a", "b:c"))
	require.NotEqual(t, mcppool.Scope("same", ""), mcppool.Scope("", "same"))
	require.NotEqual(t, mcppool.Scope("1:a", "b"), mcppool.Scope("", "1:a:b"))
}

func TestScopeCanBeReadBack(t *testing.T) {
	for _, want := range [][2]string{{"p", "t"}, {"", "t"}, {"a:b", "c:d"}, {"3:x", ":"}, {"日", "本"}} {
		project, thread, ok := mcppool.ParseScope(mcppool.Scope(want[0], want[1]))
		require.True(t, ok)
		require.Equal(t, want, [2]string{project, thread})
	}
	for _, scope := range []string{"", "x", "1", "1:", "1:a", "1:a:", "-1:a:b", "01:a:b", "+1:a:b", "99:a:b", "1:ab:c"} {
		_, _, ok := mcppool.ParseScope(scope)
		require.False(t, ok, scope)
	}
}

func TestDoHoldsTheSessionForAllItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			order = append(order, req.Params.Name)
			return mcp.NewToolResultText(""), c.sleep(ctx, time.Second)
		}}
		p := newPool(t, f, nil)
		do := after(func() error {
			return p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
				for _, tool := range []string{"begin", "commit"} {
					if _, err := s.CallTool(ctx, mcppool.Call{Tool: tool}); err != nil {
						return err
					}
				}
				_, err := s.ListTools(ctx)
				return err
			})
		})
		synctest.Wait()
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, <-do)
		require.Equal(t, []string{"begin", "commit", "t"}, order)
		require.Len(t, f.all(), 1)
	})
}

func TestDoReturnsTheErrorOfItsFunction(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	mine := errors.New("mine")
	var kept *mcppool.Session
	require.Equal(t, mine, p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(_ context.Context, s *mcppool.Session) error {
		kept = s
		return mine
	}))
	_, err := kept.CallTool(t.Context(), mcppool.Call{Tool: "t"})
	require.ErrorContains(t, err, "given back")
	require.True(t, mcppool.SafeToRetry(err), "nothing was sent")
}

func TestDoThatPanicsClosesTheSessionAndPanicsOn(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	require.PanicsWithValue(t, "oh", func() {
		_ = p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(context.Context, *mcppool.Session) error { panic("oh") })
	})
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 2)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonPanicked])
}

func TestDoIsToldWhenItsSessionIsClosed(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	err := p.Do(t.Context(), stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
		p.CloseServer(stdio)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), mcppool.ErrServerClosed)
		_, err := s.CallTool(context.Background(), mcppool.Call{Tool: "t"})
		return err
	})
	require.ErrorIs(t, err, mcppool.ErrServerClosed)
}

func TestListToolsFollowsAllPages(t *testing.T) {
	f := &fakes{list: func(req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
		n := len(req.Params.Cursor)
		res := &mcp.ListToolsResult{Tools: []mcp.Tool{mcp.NewTool(fmt.Sprintf("tool%d", n))}}
		if n < 3 {
			res.NextCursor = req.Params.Cursor + "x"
		}
		return res, nil
	}}
	p := newPool(t, f, nil)
	tools, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.NoError(t, err)
	require.Len(t, tools, 4)
	require.Equal(t, "tool3", tools[3].Name)
}

func TestListToolsEndsWhenTheCursorDoesNotMove(t *testing.T) {
	for name, cursors := range map[string][]mcp.Cursor{"same": {"a", "a"}, "circle": {"a", "b", "a"}} {
		t.Run(name, func(t *testing.T) {
			var pages int
			f := &fakes{list: func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
				res := &mcp.ListToolsResult{}
				res.NextCursor = cursors[pages]
				pages++
				return res, nil
			}}
			p := newPool(t, f, nil)
			_, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
			require.ErrorContains(t, err, "same cursor")
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			require.Len(t, f.all(), 1, "the session is kept")
		})
	}
}

func TestListToolsEndsThoughTheCursorAlwaysMoves(t *testing.T) {
	pages := 0
	f := &fakes{list: func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
		pages++
		res := &mcp.ListToolsResult{}
		res.NextCursor = mcp.Cursor(strconv.Itoa(pages))
		return res, nil
	}}
	_, err := newPool(t, f, nil).ListTools(t.Context(), stdio, mcppool.Borrow{Scope: "s"})
	require.ErrorContains(t, err, "no end")
	require.LessOrEqual(t, pages, 1000)
}

func TestSessionsIsASnapshotWhoseLoopMayCallThePool(t *testing.T) {
	p := newPool(t, &fakes{}, &mcppool.Options{ShowScopes: true})
	for _, scope := range []string{"a", "b", "c"} {
		require.NoError(t, call(t.Context(), p, stdio, scope))
	}
	var scopes []string
	for s := range p.Sessions() {
		require.NoError(t, call(t.Context(), p, stdio, s.Scope))
		require.Equal(t, "live", s.State)
		require.EqualValues(t, 1, s.Calls)
		require.Equal(t, stdio.String(), s.Server)
		scopes = append(scopes, s.Scope)
	}
	slices.Sort(scopes)
	require.Equal(t, []string{"a", "b", "c"}, scopes)
}

func TestServerMayBeChangedByItsOwnerAfterACall(t *testing.T) {
	var seen []string
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		c, err := f.dial(ctx, srv)
		seen = append(seen, srv.Args[0]+srv.Env["K"])
		return c, err
	}})
	srv := mcppool.Server{Command: "x", Args: []string{"a"}, Env: map[string]string{"K": "1"}}
	require.NoError(t, call(t.Context(), p, srv, "s"))
	srv.Args[0], srv.Env["K"] = "b", "2"
	require.NoError(t, call(t.Context(), p, srv, "s"))
	require.Equal(t, []string{"a1", "b2"}, seen)
	require.Equal(t, "a", f.all()[0].srv.Args[0], "the pool has its own copy")
}

func TestDialMayChangeTheServerThatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
			srv.Env["ADDED"] = "by Dial"
			return f.dial(ctx, srv)
		}})
		srv := mcppool.Server{Command: "srv", Env: map[string]string{"A": "1"}}
		for _, scope := range []string{"a", "b", "a"} {
			require.NoError(t, call(t.Context(), p, srv, scope))
		}
		require.Len(t, f.all(), 2)
		require.Equal(t, map[string]string{"A": "1"}, srv.Env)
	})
}

func TestErrorOfADialTellsNoSecret(t *testing.T) {
	refused := errors.New("refused")
	p := newPool(t, &fakes{}, &mcppool.Options{Dial: func(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
		return nil, fmt.Errorf("%w: %v", refused, srv.Env)
	}})
	err := call(t.Context(), p, mcppool.Server{Command: "srv", Env: map[string]string{"TOKEN": "hunter2secret"}}, "s")
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "[redacted]")
	require.NotContains(t, err.Error(), "hunter2secret")
}

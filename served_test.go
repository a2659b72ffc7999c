package mcppool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// servedBy calls a tool and gives the session that it went to.
func servedBy(t *testing.T, p *mcppool.Pool, scope, args string) (s mcppool.Served) {
	t.Helper()
	_, _ = p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Args: json.RawMessage(args), Scope: scope, Served: &s})
	return s
}

func dying(_ context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if string(req.Params.RawArguments) == `{"die":true}` {
		c.die()
		return nil, errors.New("gone")
	}
	return mcp.NewToolResultText(""), nil
}

func TestACallSaysWhichSessionServedItAndWhyTheLastOneEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{call: dying}, &mcppool.Options{IdleTimeout: time.Minute})
		first := servedBy(t, p, "a", `{}`)
		require.Equal(t, "a", first.Scope)
		require.NotEmpty(t, first.SessionID)
		require.True(t, first.Fresh)
		require.Empty(t, first.Follows)

		again := servedBy(t, p, "a", `{"die":true}`)
		require.Equal(t, first.Origin, again.Origin)
		require.False(t, again.Fresh)

		for _, next := range []struct {
			end  func()
			want mcppool.CloseReason
		}{
			{func() {}, mcppool.ReasonCrashed},
			{func() { time.Sleep(time.Hour) }, mcppool.ReasonIdle},
			{func() { p.CloseServer(stdio) }, mcppool.ReasonServerClosed},
			{func() { p.RetireServer(stdio) }, mcppool.ReasonRetired},
		} {
			next.end()
			s := servedBy(t, p, "a", `{}`)
			require.NotEqual(t, first.SessionID, s.SessionID)
			require.True(t, s.Fresh)
			require.Equal(t, next.want, s.Follows)
			require.Empty(t, servedBy(t, p, "never before "+string(next.want), `{}`).Follows)
		}
	})
}

func TestACallThatGetsNoSessionSaysNothingOfOne(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	var none mcppool.Served
	_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Args: 1, Served: &none})
	require.Error(t, err)
	require.Zero(t, none)
}

func TestASessionIsFreshForTheFirstThatIsSent(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{AfterConnect: logIn})
	require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
	f.call = func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, mcppool.MarkNotSent(errors.New("not now"))
	}
	var s mcppool.Served
	_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Scope: "a", Served: &s})
	require.Error(t, err)
	require.True(t, s.Fresh)
	f.call = nil
	require.True(t, servedBy(t, p, "a", `{}`).Fresh)
	require.False(t, servedBy(t, p, "a", `{}`).Fresh)
}

package toolbox_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

const fresh = "\n[This MCP server was started anew since the last call of it: what it held then, such as open pages, variables and logins, is gone.]"

// dying is a server whose tool "die" ends it.
func dying(_ context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.Name == "die" {
		c.once.Do(func() { close(c.done) })
		return nil, errors.New("gone")
	}
	return mcp.NewToolResultText("ok"), nil
}

func TestTheModelIsToldOnceThatStateIsGone(t *testing.T) {
	b := newBox(t, &fakes{call: dying}, nil, "s", "other")
	require.Equal(t, "ok", dispatch(t, b, "mcp__s__a", "").Text)
	require.Equal(t, "ok", dispatch(t, b, "mcp__other__a", "").Text)
	lost := dispatch(t, b, "mcp__s__die", "")
	require.ErrorIs(t, lost.Err, mcppool.ErrSessionLost)
	require.False(t, lost.Fresh)
	again := dispatch(t, b, "mcp__s__a", "")
	require.Equal(t, "ok"+fresh, again.Text)
	require.True(t, again.Fresh)
	require.Equal(t, "ok", dispatch(t, b, "mcp__s__a", "").Text)
	require.Equal(t, "ok", dispatch(t, b, "mcp__other__a", "").Text, "that server lives on")
	require.Equal(t, "ok", b.Dispatch(t.Context(), "mcp__s__a", nil, toolbox.Conversation{Thread: "new"}).Text)
}

func TestASessionThatEndedIdleOrWasClosedIsMissedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		pool, err := mcppool.New(&mcppool.Options{Dial: f.dial, IdleTimeout: time.Minute})
		require.NoError(t, err)
		defer pool.Close()
		b := boxOf(t, pool, static(t, entries("s")...), nil)
		dispatch(t, b, "mcp__s__a", "")
		time.Sleep(2 * time.Minute)
		require.True(t, dispatch(t, b, "mcp__s__a", "").Fresh)
		pool.CloseScope(conv.Scope())
		require.True(t, dispatch(t, b, "mcp__s__a", "").Fresh)
		pool.CloseScope(conv.Scope())
		b.Forget(conv)
		require.False(t, dispatch(t, b, "mcp__s__a", "").Fresh, "a new conversation of the same name misses nothing")
	})
}

func TestNobodyMissesTheStateOfServersThatKeepNone(t *testing.T) {
	shared := toolbox.Entry{ID: "shared", Server: mcppool.Server{Command: "shared", Policy: mcppool.Policy{Mode: mcppool.Shared}}}
	b := boxOf(t, newPool(t, &fakes{call: dying}), static(t, append(entries("s"), shared)...), nil)
	for range 2 {
		require.False(t, b.Dispatch(t.Context(), "mcp__s__a", nil, toolbox.Conversation{Project: "p"}).Fresh, "one-shot")
	}
	dispatch(t, b, "mcp__shared__a", "")
	dispatch(t, b, "mcp__shared__die", "")
	require.False(t, dispatch(t, b, "mcp__shared__a", "").Fresh)
}

func TestWhatIsRememberedOfConversationsIsBounded(t *testing.T) {
	b := boxOf(t, newPool(t, &fakes{}), static(t, entries("s")...), nil)
	for i := range toolbox.MaxTalks + 100 {
		c := toolbox.Conversation{Thread: strconv.Itoa(i)}
		b.Dispatch(t.Context(), "mcp__s__a", nil, c)
	}
	require.LessOrEqual(t, toolbox.Talks(b), toolbox.MaxTalks)
}

package toolbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox"
)

func TestDispatchAllRunsServersAtOnceAndOneServersCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: sleeper(time.Second)}
		b := newBox(t, f, nil, "a", "b", "c")
		calls := []toolbox.ToolCall{
			{Name: "mcp__a__1"}, {Name: "mcp__b__1"}, {Name: "mcp__a__2"}, {Name: "nonsense"},
			{Name: "mcp__c__1"}, {Name: "mcp__a__3"}, {Name: "mcp__gone__1"},
		}
		begin := time.Now()
		outs := b.DispatchAll(t.Context(), calls, conv)
		require.Equal(t, 3*time.Second, time.Since(begin))
		for i, want := range []string{"a", "b", "a", "", "c", "a", "gone"} {
			require.Equal(t, want, outs[i].Server)
			require.Equal(t, want == "" || want == "gone", outs[i].Err != nil)
		}
		var ofA []string
		for _, s := range f.served() {
			if strings.HasPrefix(s, "a ") {
				ofA = append(ofA, s)
			}
		}
		require.Equal(t, []string{"a 1 {}", "a 2 {}", "a 3 {}"}, ofA)

		begin = time.Now()
		b.DispatchAll(t.Context(), calls, toolbox.Conversation{Project: "p"})
		require.Equal(t, time.Second, time.Since(begin), "calls that share no state run at once")
		require.Empty(t, b.DispatchAll(t.Context(), nil, conv))
	})
}

func TestACancelledTurnStartsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: sleeper(time.Second)}
		b := newBox(t, f, nil, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		outs := b.DispatchAll(ctx, []toolbox.ToolCall{{Name: "mcp__a__1"}, {Name: "mcp__a__2"}, {Name: "mcp__a__3"}}, conv)
		require.Equal(t, "slept", outs[0].Text)
		require.Equal(t, "Error: MCP tool '2' timed out after 0.5s", outs[1].Text)
		require.ErrorIs(t, outs[2].Err, context.DeadlineExceeded)
		require.Len(t, f.served(), 2)
	})
}

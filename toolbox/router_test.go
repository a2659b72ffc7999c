package toolbox_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// realBox is a box over the asking server, as "s".
func realBox(t *testing.T, h toolbox.Handlers, opts toolbox.Options) *toolbox.Box {
	t.Helper()
	router := toolbox.NewRouter(h)
	pool, err := mcppool.New(&mcppool.Options{Handlers: router.PoolHandlers()})
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	opts.Router = router
	return boxOf(t, pool, static(t, toolbox.Entry{ID: "s", Server: asking(t)}), &opts)
}

func TestWhatAServerAsksReachesTheConversationThatOwnsTheSession(t *testing.T) {
	thread := func(a toolbox.Asker) string { return a.Conversation.Project + "/" + a.Conversation.Thread }
	b := realBox(t, toolbox.Handlers{
		Sampling: func(_ context.Context, from toolbox.Asker, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			res := &mcp.CreateMessageResult{Model: "model of " + thread(from)}
			res.Role, res.Content = mcp.RoleAssistant, mcp.NewTextContent("you")
			return res, nil
		},
		Elicitation: func(_ context.Context, from toolbox.Asker, _ mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			res := new(mcp.ElicitationResult)
			res.Action = mcp.ElicitationResponseActionDecline
			if thread(from) == "p:1/a" {
				res.Action, res.Content = mcp.ElicitationResponseActionAccept, map[string]any{}
			}
			return res, nil
		},
		Roots: func(_ context.Context, from toolbox.Asker) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///" + thread(from)}}, nil
		},
	}, toolbox.Options{})
	for conv, want := range map[toolbox.Conversation][3]string{
		{Project: "p:1", Thread: "a"}:      {`"model of p:1/a"`, `"accept"`, `"file:///p:1/a"`},
		{Project: "", Thread: "b:c"}:       {`"model of /b:c"`, `"decline"`, `"file:////b:c"`},
		{Project: "no thread", Thread: ""}: {`"model of /"`, `"decline"`, `"file:////"`},
	} {
		for i, tool := range []string{"sample", "elicit", "roots"} {
			out := b.Dispatch(t.Context(), "mcp__s__"+tool, nil, conv)
			require.Equal(t, want[i], out.Text)
		}
	}
}

func TestAServerThatAsksNobodyGetsAnErrorAtOnce(t *testing.T) {
	b := realBox(t, toolbox.Handlers{}, toolbox.Options{CallTimeout: 20 * time.Second})
	for _, tool := range []string{"sample", "elicit", "roots"} {
		begin := time.Now()
		out := dispatch(t, b, "mcp__s__"+tool, "")
		require.NoError(t, out.Err)
		require.True(t, out.IsError, out.Text)
		require.Less(t, time.Since(begin), 10*time.Second)
	}
}

func TestAModernServerThatRequiresInputGetsItFromTheHandlersOfTheConversation(t *testing.T) {
	router := toolbox.NewRouter(toolbox.Handlers{
		Roots: func(_ context.Context, from toolbox.Asker) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///" + from.Conversation.Thread}}, nil
		},
	})
	pool, err := mcppool.New(&mcppool.Options{Handlers: router.PoolHandlers()})
	require.NoError(t, err)
	defer pool.Close()
	e := toolbox.Entry{ID: "s", Server: asking(t)}
	e.Server.Protocol = mcppool.ProtocolModern
	b, err := toolbox.New(pool, static(t, e), &toolbox.Options{Router: router})
	require.NoError(t, err)
	out := dispatch(t, b, "mcp__s__input", "")
	require.NoError(t, out.Err)
	require.JSONEq(t, `{"roots":[{"uri":"file:///t7"}]}`, out.Text)
}

func TestAModernServerThatRequiresInputGetsNone(t *testing.T) {
	pool, err := mcppool.New(nil)
	require.NoError(t, err)
	defer pool.Close()
	e := toolbox.Entry{ID: "s", Server: asking(t)}
	e.Server.Protocol = mcppool.ProtocolModern
	b, err := toolbox.New(pool, static(t, e), nil)
	require.NoError(t, err)
	out := dispatch(t, b, "mcp__s__input", "")
	require.ErrorIs(t, out.Err, toolbox.ErrInputRequired)
	require.Equal(t, "Error: MCP tool 'input' failed: MCP server requires input that can't be given", out.Text)
}

// heard collects what a server tells.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, s)
}

func (h *heard) get() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.all...)
}

func TestWhatAServerTellsReachesTheConversation(t *testing.T) {
	var logs, others heard
	var progress []toolbox.ToolCall
	arrived := filepath.Join(t.TempDir(), "arrived")
	b := realBox(t, toolbox.Handlers{
		Log: func(from toolbox.Asker, p mcp.LoggingMessageNotificationParams) {
			logs.add(from.Conversation.Thread + " " + string(p.Level) + " " + p.Logger + " " + p.Data.(string))
		},
		Notification: func(from toolbox.Asker, n mcp.JSONRPCNotification) {
			others.add(from.Conversation.Thread + " " + n.Method)
		},
	}, toolbox.Options{OnProgress: func(conv toolbox.Conversation, call toolbox.ToolCall, n mcp.ProgressNotification) {
		progress = append(progress, call)
		require.Equal(t, "t7", conv.Thread)
		require.Equal(t, "half", n.Params.Message)
		require.NoError(t, os.WriteFile(arrived, nil, 0o600))
	}})
	args, err := json.Marshal(map[string]string{"until": arrived})
	require.NoError(t, err)
	call := toolbox.ToolCall{ID: "call_1", Name: "mcp__s__progress", Args: args}
	require.NoError(t, b.DispatchAll(t.Context(), []toolbox.ToolCall{call}, conv)[0].Err)
	require.Equal(t, []toolbox.ToolCall{call}, progress)
	require.NoError(t, dispatch(t, b, "mcp__s__log", "").Err)
	require.Eventually(t, func() bool { return len(logs.get()) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, "t7 warning l careful", logs.get()[0])
	require.NoError(t, dispatch(t, b, "mcp__s__grow", "").Err)
	require.Eventually(t, func() bool { return len(others.get()) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, "t7 notifications/tools/list_changed", others.get()[0])
}

func TestTheConversationIsReadFromTheScopeOfTheSession(t *testing.T) {
	var got toolbox.Conversation
	router := toolbox.NewRouter(toolbox.Handlers{Notification: func(from toolbox.Asker, _ mcp.JSONRPCNotification) {
		got = from.Conversation
	}})
	notify := router.PoolHandlers().Notification
	for _, want := range []toolbox.Conversation{
		{Thread: "t"}, {Project: "p", Thread: "t"}, {Project: "a:b", Thread: "c"}, {Project: "a", Thread: "b:c"}, {Project: "1:", Thread: ":"},
	} {
		notify(mcppool.Origin{Scope: want.Scope()}, mcp.JSONRPCNotification{})
		require.Equal(t, want, got)
	}
	for _, scope := range []string{"", "a scope of somebody's own", "9:p:t"} {
		notify(mcppool.Origin{Scope: scope}, mcp.JSONRPCNotification{})
		require.Zero(t, got, scope)
	}
}

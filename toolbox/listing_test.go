package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func TestADeadServerHoldsNoTurnUpAndKeepsTheToolsThatItHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		f := &fakes{list: func(ctx context.Context, _ string) ([]mcp.Tool, error) {
			if dead.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []mcp.Tool{mcp.NewTool("t")}, nil
		}}
		b := newBox(t, f, &toolbox.Options{ListTimeout: 20 * time.Second}, "s")
		tools(t, b)
		dead.Store(true)
		begin := time.Now()
		for range 10 {
			time.Sleep(time.Hour)
			require.Equal(t, []string{"mcp__s__t"}, names(tools(t, b)))
		}
		require.Equal(t, 10*time.Hour, time.Since(begin), "nobody waits for it")
		require.Len(t, tools(t, b).Failed, 1, "and it is said")
		dead.Store(false)
		time.Sleep(time.Hour)
		tools(t, b)
		synctest.Wait()
		require.Empty(t, tools(t, b).Failed)
	})
}

func TestASlowFirstStartIsWaitedForAndNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connect: func(ctx context.Context, _ string) error {
			select {
			case <-time.After(40 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		b := newBox(t, f, nil, "s")
		set := tools(t, b)
		require.ErrorIs(t, set.Failed[0], toolbox.ErrListing)
		require.EqualError(t, set.Failed[0], "toolbox: server s: the tools are still being listed")
		require.Equal(t, []string{"mcp__s__echo"}, names(tools(t, b)))
		require.NoError(t, dispatch(t, b, "mcp__s__echo", "").Err)
		require.Equal(t, 1, f.dialed("s"))
	})
}

func TestListingCostsAConversationNothing(t *testing.T) {
	for _, mode := range []mcppool.Mode{mcppool.PerScope, mcppool.Exclusive} {
		f := &fakes{}
		e := toolbox.Entry{ID: "s", Server: mcppool.Server{Command: "s", Policy: mcppool.Policy{Mode: mode}}}
		b := boxOf(t, newPool(t, f), static(t, e), nil)
		require.False(t, dispatch(t, b, "mcp__s__set", "").Fresh)
		tools(t, b)
		_, err := b.Refresh(t.Context())
		require.NoError(t, err)
		require.False(t, dispatch(t, b, "mcp__s__get", "").Fresh)
		require.Equal(t, 1, f.dialed("s"))
		require.Equal(t, 2, f.listed())
	}
}

// noticing is a box with a router, whose servers' notices come from notify.
func noticing(t *testing.T, f *fakes) (b *toolbox.Box, notify func(scope string)) {
	t.Helper()
	router := toolbox.NewRouter(toolbox.Handlers{})
	b = newBox(t, f, &toolbox.Options{Router: router}, "s")
	return b, func(scope string) {
		n := mcp.JSONRPCNotification{}
		n.Method = mcp.MethodNotificationToolsListChanged
		router.PoolHandlers().Notification(mcppool.Origin{Server: mcppool.Server{Command: "s"}.String(), Scope: scope}, n)
	}
}

func TestAStormOfNoticesIsOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
			return []mcp.Tool{mcp.NewTool("t", mcp.WithDescription(string(rune('a'+n.Load()))))}, nil
		}}
		b, notify := noticing(t, f)
		tools(t, b)
		for range 10 {
			n.Add(1)
			notify("")
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, "k", tools(t, b).Tools[0].Spec.Description, "Tools waits for the news")
		require.Equal(t, 2, f.listed())
	})
}

func TestAServerThatSaysThatItsToolsHaveChangedWhenTheyHaveNotIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notify func(string)
		f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
			if notify != nil {
				notify("")
			}
			return []mcp.Tool{mcp.NewTool("t")}, nil
		}}
		b, n := noticing(t, f)
		notify = n
		tools(t, b)
		time.Sleep(900 * time.Millisecond)
		tools(t, b)
		synctest.Wait()
		require.Equal(t, 2, f.listed())
		for range 3600 {
			time.Sleep(time.Second)
			tools(t, b)
		}
		require.Less(t, f.listed(), 20)
		require.Less(t, f.dialed("s"), 8)
	})
}

func TestAChangeWhileAListingIsUnderWayIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notify func(string)
		f := &fakes{}
		f.list = func(context.Context, string) ([]mcp.Tool, error) {
			if f.listed() == 1 {
				notify("")
				return []mcp.Tool{mcp.NewTool("old")}, nil
			}
			return []mcp.Tool{mcp.NewTool("new")}, nil
		}
		b, n := noticing(t, f)
		notify = n
		require.Equal(t, []string{"mcp__s__new"}, names(tools(t, b)))
		require.Equal(t, 2, f.listed())
	})
}

func TestAConversationSeesTheToolsOfItsOwnSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var enabled atomic.Pointer[fake]
		f := &fakes{}
		f.listOf = func(c *fake) []mcp.Tool {
			list := []mcp.Tool{mcp.NewTool("enable")}
			if enabled.Load() == c {
				list = append(list, mcp.NewTool("extra"))
			}
			return list
		}
		b, notify := noticing(t, f)
		f.call = func(_ context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.Name == "enable" {
				enabled.Store(c)
				notify(conv.Scope())
			}
			return mcp.NewToolResultText("ok"), nil
		}
		other := toolbox.Conversation{Thread: "other"}
		b.Dispatch(t.Context(), "mcp__s__ping", nil, other)
		tools(t, b)
		dispatch(t, b, "mcp__s__enable", "")
		mine, err := b.ToolsFor(t.Context(), conv)
		require.NoError(t, err)
		require.Equal(t, []string{"mcp__s__enable", "mcp__s__extra"}, names(mine))
		theirs, err := b.ToolsFor(t.Context(), other)
		require.NoError(t, err)
		require.Equal(t, []string{"mcp__s__enable"}, names(theirs))
		require.Equal(t, 2, f.dialed("s"), "one for each conversation")

		b.Forget(conv)
		mine, err = b.ToolsFor(t.Context(), conv)
		require.NoError(t, err)
		require.Len(t, mine.Tools, 2, "it is listed again")

		dispatch(t, b, "mcp__s__ping", "") // the conversation is known again
		enabled.Load().once.Do(func() { close(enabled.Load().done) })
		require.True(t, dispatch(t, b, "mcp__s__ping", "").Fresh)
		mine, err = b.ToolsFor(t.Context(), conv)
		require.NoError(t, err)
		require.Equal(t, []string{"mcp__s__enable"}, names(mine), "what the old session offered is gone with it")
	})
}

func TestANoticeIsMatchedByEveryNameThatAServerHas(t *testing.T) {
	for _, label := range []string{"one", "two", "two-0123456789ab"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakes{}
			router := toolbox.NewRouter(toolbox.Handlers{})
			named := func(name string) toolbox.Entry {
				return toolbox.Entry{ID: name, Server: mcppool.Server{Name: name, Command: "s"}}
			}
			b := boxOf(t, newPool(t, f), static(t, named("one"), named("two")), &toolbox.Options{Router: router})
			tools(t, b)
			require.Equal(t, 1, f.listed())
			n := mcp.JSONRPCNotification{}
			n.Method = mcp.MethodNotificationToolsListChanged
			router.PoolHandlers().Notification(mcppool.Origin{Server: label}, n)
			router.PoolHandlers().Notification(mcppool.Origin{Server: "another"}, n)
			tools(t, b)
			require.Equal(t, 2, f.listed())
		})
	}
}

func TestAServerWithoutToolsHasNone(t *testing.T) {
	f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
		return nil, &mcppool.RPCError{Code: -32601, Message: "method not found"}
	}}
	b := newBox(t, f, nil, "s")
	set := tools(t, b)
	require.Empty(t, set.Failed)
	require.Empty(t, set.Tools)
}

// listsOnly is a pool that only lists.
type listsOnly struct {
	list *mcppool.ToolList
	err  []error
}

func (l *listsOnly) CallTool(context.Context, mcppool.Server, mcppool.Call) (*mcp.CallToolResult, error) {
	return nil, errors.New("no calls")
}
func (l *listsOnly) CloseServer(mcppool.Server) {}
func (l *listsOnly) ToolList(context.Context, mcppool.Server, mcppool.Borrow) (*mcppool.ToolList, error) {
	if len(l.err) > 0 {
		err := l.err[0]
		l.err = l.err[1:]
		return nil, err
	}
	return l.list, nil
}

func TestWhatIsNoToolIsSkippedByName(t *testing.T) {
	list := &mcppool.ToolList{Tools: []mcp.Tool{{Name: "t", RawInputSchema: json.RawMessage(`{}`)}}, Skipped: []mcppool.SkippedTool{{Name: "odd", Reason: "it is odd"}}}
	b := boxOf(t, &listsOnly{list: list}, static(t, entries("s")...), nil)
	require.Equal(t, []toolbox.SkippedTool{{Server: "s", Name: "odd", Reason: "it is odd"}}, tools(t, b).Skipped)
}

func TestAListingWhoseSessionWasClosedWithItsScopeIsMadeOnceMore(t *testing.T) {
	b := boxOf(t, &listsOnly{list: new(mcppool.ToolList), err: []error{mcppool.ErrServerClosed}}, static(t, entries("s")...), nil)
	require.Empty(t, tools(t, b).Failed)
}

func TestCloseEndsTheListingsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		f := &fakes{list: func(ctx context.Context, _ string) ([]mcp.Tool, error) {
			<-ctx.Done()
			ended.Store(true)
			return nil, ctx.Err()
		}}
		b := newBox(t, f, &toolbox.Options{ListWait: time.Second}, "s")
		require.ErrorIs(t, tools(t, b).Failed[0], toolbox.ErrListing)
		require.False(t, ended.Load(), "it goes on")
		require.NoError(t, b.Close())
		require.True(t, ended.Load())
		require.ErrorIs(t, tools(t, b).Failed[0], toolbox.ErrBoxClosed)
	})
}

func TestServersThatHangKeepNoOtherFromBeingListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connect: func(ctx context.Context, name string) error {
			if name != "z" {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		c := newEditable(entries("a", "b", "c", "d", "e", "f", "g", "h", "i")...)
		b := boxOf(t, newPool(t, f), c, &toolbox.Options{ListWait: 20 * time.Second})
		require.Len(t, tools(t, b).Failed, 9)
		c.put(entries("z")[0])
		require.Equal(t, []string{"mcp__z__echo"}, names(tools(t, b)))
	})
}

package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func TestDispatchCallsTheToolInTheConversationsSession(t *testing.T) {
	f := &fakes{}
	b := newBox(t, f, nil, "github")
	out := dispatch(t, b, "mcp__github__search__issues", `{"q":"x"}`)
	require.NoError(t, out.Err)
	require.Equal(t, "github.search__issues", out.Text)
	require.False(t, out.IsError)
	require.Equal(t, "github", out.Server)
	require.Equal(t, "search__issues", out.Tool)
	require.NotNil(t, out.Result)
	require.Equal(t, []string{`github search__issues {"q":"x"}`}, f.served())

	dispatch(t, b, "mcp__github__other", "")
	require.Equal(t, 1, f.dialed("github"), "the same conversation, the same session")
	b.Dispatch(t.Context(), "mcp__github__t", nil, toolbox.Conversation{Project: "p1", Thread: "t8"})
	require.Equal(t, 2, f.dialed("github"))
	b.Dispatch(t.Context(), "mcp__github__t", nil, toolbox.Conversation{Project: "p1"})
	b.Dispatch(t.Context(), "mcp__github__t", nil, toolbox.Conversation{Project: "p1"})
	require.Equal(t, 4, f.dialed("github"), "no thread, no state")
}

func TestNamesAreMappedBackToServersAndToolsThatNoModelAPIWouldAccept(t *testing.T) {
	f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
		return []mcp.Tool{mcp.NewTool("get.issue"), mcp.NewTool("get/issue"), mcp.NewTool("get_issue")}, nil
	}}
	ids := []string{"My Server", "My/Server", "My_Server"}
	b := newBox(t, f, nil, ids...)
	for _, tool := range tools(t, b).Tools {
		out := dispatch(t, b, tool.Name, "")
		require.Equal(t, tool.Server+"."+tool.Spec.Name, out.Text)
	}
	require.Len(t, f.served(), 9)

	// A box that hasn't listed anything reads the names as well.
	fresh := newBox(t, f, nil, ids...)
	require.Equal(t, "My/Server.get.issue", dispatch(t, fresh, toolbox.ToolName("My/Server", "get.issue"), "").Text)
	require.ErrorIs(t, dispatch(t, fresh, toolbox.ToolName("My/Server", "get,issue"), "").Err, toolbox.ErrUnknownTool)
	require.ErrorIs(t, dispatch(t, fresh, toolbox.ToolName("My,Server", "get.issue"), "").Err, toolbox.ErrUnknownServer)
}

func TestNothingIsStartedForACallThatCanNotBeMade(t *testing.T) {
	f := &fakes{}
	off := entries("off")[0]
	off.Disabled = true
	limited := entries("limited")[0]
	limited.Allow, limited.Deny = []string{"a", "b"}, []string{"b"}
	opts := &toolbox.Options{Validate: func(*mcp.Tool, json.RawMessage) error { return errors.New("never asked") }}
	b, err := toolbox.New(newPool(t, f), static(t, off, limited, entries("on")[0]), opts)
	require.NoError(t, err)
	for _, c := range []struct {
		name, args string
		err        error
		text       string
	}{
		{"search", "", toolbox.ErrBadName, "Error: 'search' is not the name of an MCP tool: the names are of the form mcp__server__tool"},
		{"mcp__on", "", toolbox.ErrBadName, "Error: 'mcp__on' is not the name of an MCP tool: the names are of the form mcp__server__tool"},
		{"a\x1b[31m\nb", "", toolbox.ErrBadName, "Error: 'a [31m b' is not the name of an MCP tool: the names are of the form mcp__server__tool"},
		{"mcp__gone__t", "", toolbox.ErrUnknownServer, "Error: unknown MCP server 'gone'"},
		{"mcp__off__t", "", toolbox.ErrServerDisabled, "Error: MCP server 'off' is disabled"},
		{"mcp__limited__b", "", toolbox.ErrToolDenied, "Error: MCP tool 'b' is not allowed"},
		{"mcp__limited__c", "", toolbox.ErrToolDenied, "Error: MCP tool 'c' is not allowed"},
		{"mcp__on__t", "{", nil, "Error: MCP tool 't' got invalid arguments: invalid JSON at byte 1: unexpected end"},
		{"mcp__on__t", `{"a":1,}`, nil, "Error: MCP tool 't' got invalid arguments: invalid JSON at byte 7: expected a key"},
		{"mcp__on__t", `[1]`, nil, "Error: MCP tool 't' got invalid arguments: not a JSON object"},
		{"mcp__on__t", `"{}"`, nil, "Error: MCP tool 't' got invalid arguments: not a JSON object"},
		{"mcp__on__t", ` q=1`, nil, "Error: MCP tool 't' got invalid arguments: not a JSON object"},
		{"mcp__on__t", `{"a":'b'}`, nil, "Error: MCP tool 't' got invalid arguments: invalid JSON at byte 5: expected a value"},
		{"mcp__on__t", `{} {}`, nil, "Error: MCP tool 't' got invalid arguments: invalid JSON at byte 3: text after the value"},
	} {
		out := dispatch(t, b, c.name, c.args)
		require.Equal(t, c.text, out.Text)
		require.True(t, out.IsError)
		require.Nil(t, out.Result)
		if c.err != nil {
			require.ErrorIs(t, out.Err, c.err)
		} else {
			require.ErrorAs(t, out.Err, new(*toolbox.ArgsError))
		}
	}
	require.Zero(t, f.dialed("off")+f.dialed("on")+f.dialed("limited"))
	require.Empty(t, f.served())
}

func TestNoArgumentsAreSentAsAnEmptyObject(t *testing.T) {
	f := &fakes{}
	b := newBox(t, f, nil, "s")
	for _, args := range []string{"", " ", "null", "\nnull\n", "{}"} {
		require.NoError(t, dispatch(t, b, "mcp__s__t", args).Err)
	}
	require.Equal(t, slices.Repeat([]string{"s t {}"}, 5), f.served())
}

// secret stands for what must not get to a model.
const secret = "hunter2"

// errorTexts are the texts of calls that failed in the pool.
var errorTexts = []struct {
	err  error
	text string
}{
	{context.DeadlineExceeded, "timed out after 300s"},
	{context.Canceled, "cancelled"},
	{mcppool.ErrServerClosed, "failed: MCP server was updated or removed during the call"},
	{&mcppool.RPCError{Code: -32602, Message: "no such table"}, "failed: no such table"},
	{&mcppool.SessionLostError{Server: "x", Exit: "signal: killed", Stderr: secret, Err: errors.New(secret)},
		"failed: MCP server stopped during the call (signal: killed); the tool may have run"},
	{&mcppool.SessionLostError{Server: "x", Err: errors.New(secret)}, "failed: MCP server stopped during the call; the tool may have run"},
	{&mcppool.StartError{Server: "x", Phase: "start", Exit: "exit status 3", Stderr: secret, Err: errors.New(secret)},
		"failed: MCP server could not be started (exit status 3)"},
	{&mcppool.StartError{Phase: "start", RetryAfter: 1500 * time.Millisecond, Err: context.DeadlineExceeded},
		"failed: MCP server could not be started; try again in 1.5s"},
	{&mcppool.ConfigError{Field: "Server.Env[\"" + secret + "\"]", Reason: secret}, "failed: MCP server is not configured correctly"},
	{&mcppool.BusyError{Limit: "MaxProcesses", Max: 8, Waiting: 3, RetryAfter: 2 * time.Second},
		"failed: too many calls are under way; try again in 2s"},
	{mcppool.ErrBusy, "failed: too many calls are under way; try again later"},
	{mcppool.ErrClosed, "failed: the MCP servers are being shut down"},
	{errors.New("panic: " + secret + "\ngoroutine 1"), "failed: internal error"},
}

// textOf is the text of a call that fails with err.
func textOf(t testing.TB, err error) string {
	t.Helper()
	b, newErr := toolbox.New(failing{err: err}, static(t, entries("s")...), nil)
	require.NoError(t, newErr)
	out := dispatch(t, b, "mcp__s__t", "")
	require.ErrorIs(t, out.Err, err)
	require.True(t, out.IsError)
	return out.Text
}

func TestEveryErrorHasItsText(t *testing.T) {
	for _, c := range errorTexts {
		text := textOf(t, c.err)
		require.Equal(t, "Error: MCP tool 't' "+c.text, text)
		require.NotContains(t, text, secret)
	}
	b, err := toolbox.New(failing{}, failingCatalog{errors.New(secret)}, nil)
	require.NoError(t, err)
	require.Equal(t, "Error: MCP tool 't' failed: internal error", dispatch(t, b, "mcp__s__t", "").Text)
}

func TestTheREADMEGivesTheTextOfEveryError(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, c := range errorTexts {
		require.Contains(t, string(readme), "`Error: MCP tool 't' "+c.text+"`")
	}
}

func TestAServersErrorMessageIsOneLineWithoutAStackTrace(t *testing.T) {
	for message, want := range map[string]string{
		"boom\n  at f (/srv/x.js:1:2)\n  at g (y.js)":                            "boom",
		"bad value\nTraceback (most recent call last):\n  File \"x.py\", line 1": "bad value",
		"goroutine 1 [running]:\nmain.main()":                                    "the server gave no reason",
		"line one\nline two":                                                     "line one line two",
		strings.Repeat("é", 600):                                                 strings.Repeat("é", 500) + "…",
	} {
		require.Equal(t, "Error: MCP tool 't' failed: "+want, textOf(t, &mcppool.RPCError{Code: 1, Message: message}))
	}
}

// failing is a pool whose calls fail.
type failing struct{ err error }

func (f failing) CallTool(context.Context, mcppool.Server, mcppool.Call) (*mcp.CallToolResult, error) {
	return nil, f.err
}
func (f failing) ListTools(context.Context, mcppool.Server, mcppool.Borrow) ([]mcp.Tool, error) {
	return nil, f.err
}
func (f failing) CloseServer(mcppool.Server) {}

type failingCatalog struct{ err error }

func (c failingCatalog) Lookup(context.Context, string) (toolbox.Entry, error) {
	return toolbox.Entry{}, c.err
}
func (c failingCatalog) List(context.Context) ([]toolbox.Entry, error) { return nil, c.err }

func TestAToolsOwnFailureIsAResult(t *testing.T) {
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such issue"), nil
	}}
	out := dispatch(t, newBox(t, f, nil, "s"), "mcp__s__t", "")
	require.NoError(t, out.Err)
	require.True(t, out.IsError)
	require.Equal(t, "Error: no such issue", out.Text)
}

func sleeper(d time.Duration) func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := c.sleep(ctx, d); err != nil {
			return nil, err
		}
		return mcp.NewToolResultText("slept"), nil
	}
}

func TestACallEndsAtItsTimeout(t *testing.T) {
	hour := sleeper(time.Hour)
	for _, c := range []struct {
		name    string
		options time.Duration
		entry   time.Duration
		caller  time.Duration
		want    time.Duration
		text    string
	}{
		{name: "default", want: 300 * time.Second, text: "300s"},
		{name: "options", options: 200 * time.Millisecond, want: 200 * time.Millisecond, text: "0.2s"},
		{name: "entry", options: time.Second, entry: 90 * time.Second, want: 90 * time.Second, text: "90s"},
		{name: "caller", options: time.Second, caller: 250 * time.Millisecond, want: 250 * time.Millisecond, text: "0.25s"},
		{name: "caller alone", options: -1, caller: 1234567 * time.Microsecond, want: 1234567 * time.Microsecond, text: "1.23s"},
		{name: "entry without limit", options: time.Second, entry: -1, caller: 3 * time.Second, want: 3 * time.Second, text: "3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := entries("s")[0]
				e.Timeout = c.entry
				b, err := toolbox.New(newPool(t, &fakes{call: hour}), static(t, e), &toolbox.Options{CallTimeout: c.options})
				require.NoError(t, err)
				ctx := t.Context()
				if c.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.caller)
					defer cancel()
				}
				begin := time.Now()
				out := b.Dispatch(ctx, "mcp__s__t", nil, conv)
				require.Equal(t, c.want, time.Since(begin))
				require.Equal(t, "Error: MCP tool 't' timed out after "+c.text, out.Text)
				require.ErrorIs(t, out.Err, context.DeadlineExceeded)
			})
		})
	}
	t.Run("no limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, &fakes{call: hour}, &toolbox.Options{CallTimeout: -1}, "s")
			require.Equal(t, "slept", dispatch(t, b, "mcp__s__t", "").Text)
		})
	})
}

func TestTheStartOfAServerCountsTowardsTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: sleeper(time.Second), connect: func(ctx context.Context, _ string) error {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
		b := newBox(t, f, &toolbox.Options{CallTimeout: 1500 * time.Millisecond}, "s")
		begin := time.Now()
		require.Equal(t, "Error: MCP tool 't' timed out after 1.5s", dispatch(t, b, "mcp__s__t", "").Text)
		require.Equal(t, 1500*time.Millisecond, time.Since(begin))
	})
}

func TestACancelledCallSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, &fakes{call: sleeper(time.Hour)}, nil, "s")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		out := b.Dispatch(ctx, "mcp__s__t", nil, conv)
		require.Equal(t, "Error: MCP tool 't' cancelled", out.Text)
		require.ErrorIs(t, out.Err, context.Canceled)
	})
}

func TestAnEditBetweenLookingUpAndSendingFailsTheCall(t *testing.T) {
	const text = "Error: MCP tool 't' failed: MCP server was updated or removed during the call"
	for name, edit := range map[string]func(c *editable, e toolbox.Entry){
		"changed":     func(c *editable, e toolbox.Entry) { e.Server.Args = []string{"--new"}; c.put(e) },
		"disabled":    func(c *editable, e toolbox.Entry) { e.Disabled = true; c.put(e) },
		"removed":     func(c *editable, e toolbox.Entry) { c.remove(e.ID) },
		"tool denied": func(c *editable, e toolbox.Entry) { e.Deny = []string{"t"}; c.put(e) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := entries("s")[0]
				c := newEditable(e)
				slow := false
				f := &fakes{connect: func(context.Context, string) error {
					if slow {
						edit(c, e) // while it connects
					}
					return nil
				}}
				pool := newPool(t, f)
				b, err := toolbox.New(pool, c, nil)
				require.NoError(t, err)
				other := toolbox.Conversation{Thread: "other"}
				require.NoError(t, b.Dispatch(t.Context(), "mcp__s__t", nil, other).Err)
				slow = true
				out := dispatch(t, b, "mcp__s__t", "")
				require.Equal(t, text, out.Text)
				require.ErrorIs(t, out.Err, mcppool.ErrServerClosed)
				require.Len(t, f.served(), 1, "nothing was sent")
				synctest.Wait()
				if name == "tool denied" {
					require.Equal(t, 1, f.opened("s"), "the other conversation's session is of an entry that still stands")
				} else {
					require.Zero(t, f.opened("s"), "no session of the old entry stays, the idle one of the other conversation included")
				}
			})
		})
	}
}

func TestAWarmSessionIsCheckedAgainRightBeforeTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := entries("s")[0]
		c := newEditable(e)
		f := &fakes{call: sleeper(time.Second)}
		b, err := toolbox.New(newPool(t, f), c, nil)
		require.NoError(t, err)
		first := make(chan toolbox.Output, 1)
		go func() { first <- dispatch(t, b, "mcp__s__first", "") }()
		synctest.Wait()
		second := make(chan toolbox.Output, 1)
		go func() { second <- dispatch(t, b, "mcp__s__second", "") }() // waits for the first
		synctest.Wait()
		e.Server.Dir = "/new"
		c.put(e)
		require.Equal(t, "slept", (<-first).Text, "what was sent before the edit ends in peace")
		require.ErrorIs(t, (<-second).Err, mcppool.ErrServerClosed)
		require.Len(t, f.served(), 1)
	})
}

func TestACatalogThatFailsDuringACallCostsNoState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEditable(entries("s")...)
		f := &fakes{connect: func(context.Context, string) error {
			c.fail(errors.New("database is down"))
			return nil
		}}
		b, err := toolbox.New(newPool(t, f), c, nil)
		require.NoError(t, err)
		require.Equal(t, "s.t", dispatch(t, b, "mcp__s__t", "").Text)
	})
}

func TestEditsRacingDispatchNeverReachAnOldServer(t *testing.T) {
	f := &fakes{}
	c := newEditable()
	pool := newPool(t, f)
	b, err := toolbox.New(pool, c, nil)
	require.NoError(t, err)
	ids := []string{"a", "b"}
	stop := make(chan struct{})
	var edits sync.WaitGroup
	edits.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			e := toolbox.Entry{ID: ids[i%2], Server: mcppool.Server{Command: ids[i%2] + string(rune('0'+i/2%3))}, Disabled: i%7 == 0}
			if i%5 == 0 {
				c.remove(e.ID)
			} else {
				c.put(e)
			}
		}
	})
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for j := range 100 {
				conv := toolbox.Conversation{Thread: string(rune('a' + i%3))}
				out := b.Dispatch(t.Context(), "mcp__"+ids[j%2]+"__t", nil, conv)
				switch {
				case out.Err == nil:
					if !strings.HasPrefix(out.Text, ids[j%2]) {
						t.Errorf("%s answered for %s", out.Text, ids[j%2])
					}
				case errors.Is(out.Err, mcppool.ErrServerClosed), errors.Is(out.Err, toolbox.ErrUnknownServer),
					errors.Is(out.Err, toolbox.ErrServerDisabled):
				default:
					t.Error(out.Err)
				}
				if j%10 == 0 {
					if _, err := b.Tools(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	edits.Wait()
}

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

func TestArgumentsAreValidatedAgainstToolsThatAreKnown(t *testing.T) {
	f := &fakes{}
	var got []string
	b := newBox(t, f, &toolbox.Options{Validate: func(tool *mcp.Tool, args json.RawMessage) error {
		got = append(got, tool.Name+string(args))
		if string(args) == `{"bad":1}` {
			return errors.New("bad is not allowed")
		}
		return nil
	}}, "s")
	require.NoError(t, dispatch(t, b, "mcp__s__echo", `{"bad":1}`).Err, "nothing is known of the tool yet")
	tools(t, b)
	out := dispatch(t, b, "mcp__s__echo", `{"bad":1}`)
	require.Equal(t, "Error: MCP tool 'echo' got invalid arguments: bad is not allowed", out.Text)
	require.NoError(t, dispatch(t, b, "mcp__s__echo", ``).Err)
	require.NoError(t, dispatch(t, b, "mcp__s__unlisted", ``).Err)
	require.Equal(t, []string{`echo{"bad":1}`, `echo{}`}, got)
	require.Len(t, f.served(), 3)
}

func TestASessionThatDiesDuringTheCallIsNotCalledAgain(t *testing.T) {
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, transport.NewError(transport.ErrTransportClosed)
	}}
	out := dispatch(t, newBox(t, f, nil, "s"), "mcp__s__t", "")
	require.Equal(t, "Error: MCP tool 't' failed: MCP server stopped during the call; the tool may have run", out.Text)
	require.ErrorIs(t, out.Err, mcppool.ErrSessionLost)
	require.Len(t, f.served(), 1)
}

func TestANameThatNeedsTheListOfToolsSaysWhenThereIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{list: func(ctx context.Context, _ string) ([]mcp.Tool, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		b := newBox(t, f, &toolbox.Options{ListTimeout: time.Second}, "s")
		name := toolbox.ToolName("s", "a.b")
		out := dispatch(t, b, name, "")
		part := strings.TrimPrefix(name, "mcp__s__")
		require.Equal(t, "Error: MCP tool '"+part+"' failed: MCP server did not list its tools within 1s", out.Text)

		slow := newBox(t, f, &toolbox.Options{CallTimeout: 500 * time.Millisecond}, "s")
		require.Equal(t, "Error: MCP tool '"+part+"' timed out after 0.5s", dispatch(t, slow, name, "").Text)
	})
}

package mcppool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestSessionThatDiedWhileIdleIsReplacedBeforeAnythingIsSent(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, nil)
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	f.all()[0].die()
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 2)
	require.Equal(t, 1, f.all()[0].served(), "the dead one got nothing more")
	require.NoError(t, p.Shutdown(t.Context()))
	require.Equal(t, []int{1, 1}, f.closed())
	require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonCrashed])
}

func TestFailingToolLeavesItsSessionAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		res *mcp.CallToolResult
		err error
	}{
		"result":   {res: mcp.NewToolResultError("no such file")},
		"JSON-RPC": {err: &mcppool.RPCError{Code: -32601, Message: "no such tool"}},
		"mcp-go":   {err: mcp.ErrInvalidParams},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return tc.res, tc.err
			}}
			p := newPool(t, f, nil)
			for range 2 {
				res, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Scope: "s"})
				require.Equal(t, tc.res, res)
				if tc.err == nil {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, tc.err)
				require.False(t, mcppool.SafeToRetry(err))
			}
			require.Len(t, f.all(), 1)
		})
	}
}

func TestRPCErrorIsOneOfTheClientLibrarysToo(t *testing.T) {
	require.ErrorIs(t, &mcppool.RPCError{Code: -32601, Message: "x"}, mcp.ErrMethodNotFound)
}

func TestTransportThatBreaksDuringACallLosesTheSessionAndNothingIsSentAgain(t *testing.T) {
	for name, lose := range map[string]func(c *fake) error{
		"reported by Done": func(c *fake) error { c.die(); return errors.New("EOF") },
		"reported by the client library": func(*fake) error {
			return transport.NewError(transport.ErrTransportClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			breaks := true
			f := &fakes{}
			f.call = func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if breaks {
					return nil, lose(c)
				}
				return mcp.NewToolResultText("ok"), nil
			}
			p := newPool(t, f, nil)
			err := call(t.Context(), p, stdio, "s")
			require.ErrorIs(t, err, mcppool.ErrSessionLost)
			var lost *mcppool.SessionLostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, stdio.String(), lost.Server)
			require.False(t, mcppool.SafeToRetry(err))
			require.Len(t, f.all(), 1, "not sent again")
			breaks = false
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			require.Len(t, f.all(), 2)
			require.Equal(t, 1, f.all()[0].served())
		})
	}
}

func TestClosedServerIsNotMistakenForABrokenTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, c.sleep(ctx, time.Hour)
		}}
		p := newPool(t, f, nil)
		c := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		p.CloseServer(stdio)
		err := <-c
		require.ErrorIs(t, err, mcppool.ErrServerClosed)
		require.NotErrorIs(t, err, mcppool.ErrSessionLost)
		require.False(t, mcppool.SafeToRetry(err))
		require.Len(t, f.all(), 1, "no reconnect")
	})
}

func TestDeadSessionIsClosedByTheSlowCallThatStillHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: func(_ context.Context, _ *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.Name == "slow" {
				time.Sleep(time.Second) // it is answered although the process is gone
			}
			return mcp.NewToolResultText(req.Params.Name), nil
		}}
		p := newPool(t, f, nil)
		slow := after(func() error {
			res, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "slow", Scope: "s"})
			require.NotNil(t, res)
			return err
		})
		synctest.Wait()
		f.all()[0].die()
		start := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "s"), "a fresh session, without waiting")
		require.Zero(t, time.Since(start))
		require.Equal(t, []int{0, 0}, f.closed(), "the old one is still in use")
		require.NoError(t, <-slow)
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed())
		require.Equal(t, 1, p.Stats().Kept)
	})
}

func TestServerThatDiesBeforeEachUseIsNotTriedForEver(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{Dial: func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
		c, err := f.dial(ctx, srv)
		c.(*fake).die()
		return c, err
	}})
	err := call(t.Context(), p, stdio, "s")
	require.ErrorIs(t, err, mcppool.ErrSessionLost)
	require.True(t, mcppool.SafeToRetry(err), "nothing was sent")
	require.Equal(t, 2, f.dialed(), "one reconnect")
}

func TestSessionThatDiesRightBeforeTheSendIsReplacedOnce(t *testing.T) {
	deaths := 1
	f := &fakes{call: func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if deaths--; deaths >= 0 {
			c.die()
			return nil, mcppool.MarkNotSent(transport.ErrTransportClosed)
		}
		return mcp.NewToolResultText("ok"), nil
	}}
	p := newPool(t, f, nil)
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Equal(t, 2, f.dialed())
	deaths = 2
	err := call(t.Context(), p, stdio, "s")
	require.ErrorIs(t, err, mcppool.ErrSessionLost)
	require.True(t, mcppool.SafeToRetry(err))
	require.Equal(t, 3, f.dialed())
}

func TestClientThatPanicsLosesOnlyItsSession(t *testing.T) {
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("oh") }}
	p := newPool(t, f, nil)
	require.PanicsWithValue(t, "oh", func() { _ = call(t.Context(), p, stdio, "s") })
	f.call = nil
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.Len(t, f.all(), 2)
}

func TestFailedConnectIsAStartErrorForEveryCallerThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no such thing")
		f := &fakes{connectTime: time.Second, connectErr: cause}
		p := newPool(t, f, nil)
		var calls []<-chan error
		for range 3 {
			calls = append(calls, after(func() error { return call(t.Context(), p, stdio, "s") }))
		}
		for _, c := range calls {
			err := <-c
			var start *mcppool.StartError
			require.ErrorAs(t, err, &start)
			require.ErrorIs(t, err, cause)
			require.Equal(t, stdio.String(), start.Server)
			require.True(t, mcppool.SafeToRetry(err))
		}
		require.Equal(t, 1, f.dialed())
		synctest.Wait()
		require.Zero(t, mcppool.Remembered(p))
	})
}

func TestDialThatPanicsOrGivesNothingIsAStartError(t *testing.T) {
	for name, dial := range map[string]func(context.Context, mcppool.Server) (mcppool.Client, error){
		"panics":        func(context.Context, mcppool.Server) (mcppool.Client, error) { panic("secret") },
		"gives nothing": func(context.Context, mcppool.Server) (mcppool.Client, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, &fakes{}, &mcppool.Options{Dial: dial})
			err := call(t.Context(), p, stdio, "s")
			var start *mcppool.StartError
			require.ErrorAs(t, err, &start)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

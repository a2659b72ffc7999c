package mcppool_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestListingAsksALiveSessionBetweenItsCallsAndStartsNothing(t *testing.T) {
	for _, srv := range []mcppool.Server{
		{Command: "plain"},
		{Command: "exclusive", Policy: mcppool.Policy{Mode: mcppool.Exclusive}},
		{Command: "shared", Policy: mcppool.Policy{Mode: mcppool.Shared}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var running, asked int
			var mu sync.Mutex
			f := &fakes{
				call: func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					mu.Lock()
					running++
					mu.Unlock()
					defer func() {
						mu.Lock()
						running--
						mu.Unlock()
					}()
					return mcp.NewToolResultText("ok"), c.sleep(ctx, time.Second)
				},
				list: func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
					mu.Lock()
					defer mu.Unlock()
					require.Zero(t, running, "a listing overtakes no call")
					asked++
					return &mcp.ListToolsResult{}, nil
				},
			}
			p := newPool(t, f, nil)
			busy := after(func() error { return call(t.Context(), p, srv, "a") })
			synctest.Wait()
			for _, scope := range []string{"", "a", "b"} {
				_, err := p.ListTools(t.Context(), srv, mcppool.Borrow{Scope: scope})
				require.NoError(t, err)
			}
			require.NoError(t, <-busy)
			require.Equal(t, 3, asked)
			require.Equal(t, 1, f.dialed())
			require.Equal(t, []int{0}, f.closed())
		})
	}
}

func TestASessionThatWasStartedForAListingServesTheFirstCall(t *testing.T) {
	for _, srv := range []mcppool.Server{
		{Command: "plain"},
		{Command: "exclusive", Policy: mcppool.Policy{Mode: mcppool.Exclusive}},
		{Command: "shared", Policy: mcppool.Policy{Mode: mcppool.Shared}},
	} {
		f := new(fakes)
		p := newPool(t, f, nil)
		for range 3 {
			_, err := p.ListTools(t.Context(), srv, mcppool.Borrow{})
			require.NoError(t, err)
		}
		require.NoError(t, call(t.Context(), p, srv, "a"))
		_, err := p.ListTools(t.Context(), srv, mcppool.Borrow{Scope: "b"})
		require.NoError(t, err)
		require.Equal(t, 1, f.dialed())
	}
}

func TestACallThatComesDuringASlowStartForAListingStartsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 40 * time.Second}
		p := newPool(t, f, nil)
		listed := after(func() error { _, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{}); return err })
		time.Sleep(time.Second)
		called := after(func() error { return call(t.Context(), p, stdio, "a") })
		require.NoError(t, <-listed)
		require.NoError(t, <-called)
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		require.Equal(t, 1, f.dialed())
	})
}

func TestAListingThatIsGivenUpCostsNobodyItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		f := &fakes{list: func(mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
			<-hang
			return nil, context.DeadlineExceeded
		}}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		time.AfterFunc(time.Second, func() { close(hang) })
		_, err := p.ListTools(within(t, time.Second), stdio, mcppool.Borrow{Scope: "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		require.Equal(t, 1, f.dialed())
	})
}

func TestAListersCheckThatSaysNoCostsNobodyElseASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "alice"))
		no := func() bool { return false }
		for _, scope := range []string{"", "bob"} {
			_, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{Scope: scope, Check: no})
			require.ErrorIs(t, err, mcppool.ErrServerClosed)
			synctest.Wait()
			require.Equal(t, []int{0}, f.closed())
		}
		p.CloseScope("alice")
		_, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{Scope: "bob", Check: no})
		require.ErrorIs(t, err, mcppool.ErrServerClosed)
		synctest.Wait()
		require.Zero(t, p.Stats().Open, "what was begun for the listing is of no use")
	})
}

// Whether a server answers a list of tools soon says little of whether it lives.
func TestAnImpatientListerCostsNobodyElseASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{listCtx: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "alice"))
		for _, patience := range []time.Duration{time.Millisecond, time.Hour} {
			_, err := p.ListTools(within(t, patience), stdio, mcppool.Borrow{Scope: "bob"})
			require.Error(t, err)
			time.Sleep(time.Minute)
			require.NoError(t, call(t.Context(), p, stdio, "alice"))
		}
		require.Equal(t, 1, f.dialed())
	})
}

func TestAServerThatDoesNotListKeepsCallsWaitingForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{listCtx: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		p := newPool(t, f, nil)
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		listed := after(func() error { _, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{}); return err })
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, call(t.Context(), p, stdio, "b"), "others have sessions of their own")
		require.Zero(t, time.Since(begin))
		err := <-listed
		require.ErrorContains(t, err, "waiting for the answer: no answer within 30s")
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's own time isn't over")
		require.Equal(t, 30*time.Second, time.Since(begin))
	})
}

func TestAListingIsNoUseOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fakes)
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute})
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		time.Sleep(50 * time.Second)
		_, err := p.ListTools(t.Context(), stdio, mcppool.Borrow{})
		require.NoError(t, err)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestWhatIsNoToolIsSkippedAndNamed(t *testing.T) {
	list, err := realPool(t, nil).ToolList(t.Context(), real(t, "raw"), mcppool.Borrow{})
	require.NoError(t, err)
	require.Len(t, list.Tools, 1)
	require.Equal(t, `{"type":"object","anyOf":[{"required":["a"]}],"x":12345678901234567890}`, string(list.Tools[0].RawInputSchema))
	require.Equal(t, []mcppool.SkippedTool{{Name: "odd", Reason: "inputSchema is no object"}, {Reason: "it has no name"}}, list.Skipped)
}

package mcppool_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func shared(concurrent bool, processes int) mcppool.Server {
	srv := stdio
	srv.Policy = mcppool.Policy{Mode: mcppool.Shared, Concurrent: concurrent, Processes: processes}
	return srv
}

func TestSharedServerServesAllScopesInOneSessionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		start := time.Now()
		var calls []<-chan error
		for _, scope := range []string{"a", "b", ""} {
			calls = append(calls, after(func() error { return call(t.Context(), p, shared(false, 0), scope) }))
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, f.all(), 1)
		p.CloseScope("a")
		require.Equal(t, 1, p.Stats().Kept, "it isn't the scope's")
		require.NoError(t, call(t.Context(), p, stdio, "a"))
		require.Len(t, f.all(), 2, "who doesn't share has a session of its own")
	})
}

func TestConcurrentCallsOfASharedServerOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		f := &fakes{}
		f.call = func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.mu.Lock()
			most = max(most, c.running)
			c.overlap = false // it is asked for
			c.mu.Unlock()
			return mcp.NewToolResultText(""), c.sleep(ctx, time.Second)
		}
		p := newPool(t, f, nil)
		start := time.Now()
		var calls []<-chan error
		for i := range 10 {
			calls = append(calls, after(func() error { return call(t.Context(), p, shared(true, 0), fmt.Sprint(i)) }))
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 10, most)
		require.Len(t, f.all(), 1)
	})
}

func TestSharedServerOpensAnotherProcessOnlyWhenAllAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		srv := shared(false, 3)
		for range 2 {
			require.NoError(t, call(t.Context(), p, srv, ""))
		}
		require.Len(t, f.all(), 1)
		var calls []<-chan error
		for range 6 {
			calls = append(calls, after(func() error { return call(t.Context(), p, srv, "") }))
			synctest.Wait()
		}
		start := time.Now()
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Len(t, f.all(), 3)
		require.Equal(t, 2*time.Second, time.Since(start), "two calls each: the least busy one is chosen")
	})
}

func TestSharedProcessesAtALimitShareWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}})
		srv := shared(false, 3)
		one := after(func() error { return call(t.Context(), p, srv, "") })
		synctest.Wait()
		two := after(func() error { return call(t.Context(), p, srv, "") })
		require.NoError(t, <-one)
		require.NoError(t, <-two)
		require.Len(t, f.all(), 1)
	})
}

func TestServerHasAnIdleTimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute, MaxSessions: 3})
		short, long, never := other(0), other(1), other(2)
		short.Policy.IdleTimeout, long.Policy.IdleTimeout, never.Policy.IdleTimeout = time.Second, time.Hour, -1
		for _, srv := range []mcppool.Server{never, long, short} {
			require.NoError(t, call(t.Context(), p, srv, "s"))
			time.Sleep(1)
		}
		time.Sleep(time.Second - 1)
		synctest.Wait()
		require.Equal(t, []int{0, 0, 1}, f.closed())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 1}, f.closed())
		time.Sleep(10000 * time.Hour)
		require.NoError(t, call(t.Context(), p, never, "s"))
		require.Len(t, f.all(), 3)
	})
}

func TestCapEvictsTheLeastRecentlyUsedWhateverItsIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 2})
		for i, timeout := range []time.Duration{time.Hour, time.Minute, -1} {
			srv := other(i)
			srv.Policy.IdleTimeout = timeout
			require.NoError(t, call(t.Context(), p, srv, "s"))
			time.Sleep(1)
		}
		synctest.Wait()
		require.Equal(t, []int{1, 0, 0}, f.closed())
	})
}

func TestOptionsOfAServerThatContradictAreRefused(t *testing.T) {
	p := newPool(t, &fakes{}, nil)
	for field, srv := range map[string]mcppool.Server{
		"Server.Policy.Mode":         {Command: "x", Policy: mcppool.Policy{Mode: "each"}},
		"Server.Policy.Concurrent":   {Command: "x", Policy: mcppool.Policy{Concurrent: true}},
		"Server.Policy.Processes":    {Command: "x", Policy: mcppool.Policy{Processes: 2}},
		"Server.Policy.Spares":       {Command: "x", Policy: mcppool.Policy{Spares: -1}},
		"Server.Policy.AfterAbandon": {Command: "x", Policy: mcppool.Policy{AfterAbandon: 9}},
		"Server.Protocol":            {Command: "x", Protocol: "1"},
	} {
		var bad *mcppool.ConfigError
		require.ErrorAs(t, call(t.Context(), p, srv, "s"), &bad, field)
		require.Equal(t, field, bad.Field)
	}
}

func TestOneCancelledCallCostsAConcurrentSessionNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer, c.sleep(ctx, time.Second)
		}}
		p := newPool(t, f, nil)
		srv := mcppool.Server{Command: "shared", Policy: mcppool.Policy{Mode: mcppool.Shared, Concurrent: true}}
		others := after(func() error { return call(t.Context(), p, srv, "a") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, call(ctx, p, srv, "b"), context.DeadlineExceeded)
		require.NoError(t, <-others)
		require.NoError(t, call(t.Context(), p, srv, "c"))
		require.Equal(t, 1, f.dialed())
		f.all()[0].overlap = false // which they may
	})
}

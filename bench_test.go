package mcppool_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// noop is a client that costs nothing, so that what is measured is the pool.
type noop struct{ done chan struct{} }

var answer = mcp.NewToolResultText("ok")

func (c *noop) CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return answer, nil
}

func (c *noop) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}
func (c *noop) Done() <-chan struct{} { return c.done }
func (c *noop) Err() error            { return nil }
func (c *noop) Close() error          { return nil }

func noopPool(b testing.TB, opts mcppool.Options) *mcppool.Pool {
	b.Helper()
	opts.Dial = func(context.Context, mcppool.Server) (mcppool.Client, error) {
		return &noop{done: make(chan struct{})}, nil
	}
	p, err := mcppool.New(&opts)
	require.NoError(b, err)
	b.Cleanup(func() { p.Close() })
	return p
}

// typical has what an entry of a configuration file usually has.
var typical = mcppool.Server{
	Command: "npx",
	Args:    []string{"-y", "@playwright/mcp@latest", "--headless", "--isolated"},
	Env:     map[string]string{"API_KEY": "sk-0123456789abcdef0123456789abcdef", "LOG_LEVEL": "warn", "REGION": "eu"},
}

// fill opens n sessions and gives their scopes.
func fill(b testing.TB, p *mcppool.Pool, n int) []string {
	b.Helper()
	scopes := make([]string, n)
	for i := range scopes {
		scopes[i] = "project:" + strconv.Itoa(i)
		require.NoError(b, call(context.Background(), p, typical, scopes[i]))
	}
	return scopes
}

// BenchmarkWarmCall is one goroutine's calls on sessions that are there.
func BenchmarkWarmCall(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			p := noopPool(b, mcppool.Options{MaxSessions: -1})
			scopes := fill(b, p, n)
			ctx := context.Background()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := p.CallTool(ctx, typical, mcppool.Call{Tool: "t", Scope: scopes[i%n]}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkWarmCallTraced is what a Trace that counts calls adds to one. Calls
// with and without take turns, so that both meet the same noise; an op is batch
// calls of each, and the metrics are medians for one call.
func BenchmarkWarmCallTraced(b *testing.B) {
	const batch = 100
	var begun, ended atomic.Int64
	plain := noopPool(b, mcppool.Options{})
	counted := noopPool(b, mcppool.Options{Trace: &mcppool.Trace{
		CallBegin: func(context.Context, mcppool.CallBeginInfo) { begun.Add(1) },
		CallEnd:   func(context.Context, mcppool.CallEndInfo) { ended.Add(1) },
	}})
	ctx := context.Background()
	calls := func(p *mcppool.Pool) time.Duration {
		start := time.Now()
		for range batch {
			if _, err := p.CallTool(ctx, typical, mcppool.Call{Tool: "t", Scope: "s"}); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start) / batch
	}
	calls(plain)
	calls(counted)
	begun.Store(0)
	ended.Store(0)
	var without, with, extra []time.Duration
	for b.Loop() {
		w, c := calls(plain), calls(counted)
		without, with, extra = append(without, w), append(with, c), append(extra, c-w)
	}
	if n := int64(len(with)) * batch; begun.Load() != n || ended.Load() != n {
		b.Fatalf("%d calls, %d begun, %d ended", n, begun.Load(), ended.Load())
	}
	reportMedians(b, map[string][]time.Duration{"plain-ns/call": without, "counted-ns/call": with, "extra-ns/call": extra})
}

// BenchmarkHandOver is from the release of a session until the next in its line
// has it. The metric is a median.
func BenchmarkHandOver(b *testing.B) {
	p := noopPool(b, mcppool.Options{})
	ctx := b.Context()
	var took []time.Duration
	for b.Loop() {
		first, err := p.Acquire(ctx, typical, mcppool.Borrow{Scope: "s"})
		require.NoError(b, err)
		has := make(chan time.Time)
		go func() {
			next, err := p.Acquire(ctx, typical, mcppool.Borrow{Scope: "s"})
			has <- time.Now()
			if err == nil {
				next.Release()
			}
		}()
		waitInFlight(b, p, 2)
		released := time.Now()
		first.Release()
		took = append(took, (<-has).Sub(released))
	}
	reportMedians(b, map[string][]time.Duration{"handover-ns/op": took})
}

// BenchmarkWarmCallParallel is 64 goroutines on 100 000 keys.
func BenchmarkWarmCallParallel(b *testing.B) {
	p := noopPool(b, mcppool.Options{MaxSessions: -1})
	scopes := fill(b, p, 100_000)
	ctx := context.Background()
	var seed atomic.Uint64
	b.SetParallelism(32) // times GOMAXPROCS
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := seed.Add(1) * 7919
		for pb.Next() {
			i++
			if _, err := p.CallTool(ctx, typical, mcppool.Call{Tool: "t", Scope: scopes[i*104729%100_000]}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEvict opens a session while as many as the cap allows stay: each
// opening evicts one.
func BenchmarkEvict(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("stay=%d", n), func(b *testing.B) {
			p := noopPool(b, mcppool.Options{MaxSessions: n})
			fill(b, p, n)
			ctx := context.Background()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := call(ctx, p, typical, "new:"+strconv.Itoa(i)); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkReap closes one idle session while others stay.
func BenchmarkReap(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("stay=%d", n), func(b *testing.B) {
			p := noopPool(b, mcppool.Options{MaxSessions: -1})
			require.NoError(b, call(context.Background(), p, typical, "old"))
			fill(b, p, n)
			b.ReportAllocs()
			for b.Loop() {
				mcppool.ReapOldest(p)
				if err := call(context.Background(), p, typical, "again"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStats(b *testing.B) {
	p := noopPool(b, mcppool.Options{MaxSessions: -1})
	fill(b, p, 10_000)
	for b.Loop() {
		p.Stats()
	}
}

func BenchmarkSessions(b *testing.B) {
	p := noopPool(b, mcppool.Options{MaxSessions: -1})
	fill(b, p, 10_000)
	for b.Loop() {
		for range p.Sessions() {
		}
	}
}

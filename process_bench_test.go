package mcppool_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// BenchmarkWarmProcessCall is one goroutine's calls on the session of a child
// process that is as fast as can be.
func BenchmarkWarmProcessCall(b *testing.B) {
	srv := real(b, "")
	setHostile(&srv, "fast")
	p := realPool(b, nil)
	ctx := b.Context()
	call := mcppool.Call{Tool: "echo", Scope: "s"}
	_, err := p.CallTool(ctx, srv, call)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.CallTool(ctx, srv, call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSpareCall is the first call of a scope on a warm spare, beside its later
// calls. Some of what a first call takes longer is the server's own, as what it runs
// then it runs for the first time; so there is also the first call of a session that
// its caller has held since it was connected, which spares have no part in. An op is
// one process of each; the metrics are medians.
func BenchmarkSpareCall(b *testing.B) {
	for _, name := range []string{"fast", "mcp-go"} {
		b.Run("server="+name, func(b *testing.B) {
			srv, tool := real(b, "state"), "pid"
			if name == "fast" {
				srv = real(b, "")
				setHostile(&srv, name)
				tool = "echo"
			}
			p := realPool(b, &mcppool.Options{MaxSessions: -1})
			ctx := b.Context()
			took := make(map[string][]time.Duration)
			timed := func(unit string, call func() error) {
				begun := time.Now()
				require.NoError(b, call())
				took[unit] = append(took[unit], time.Since(begun))
			}
			for i := 0; b.Loop(); i++ {
				scope := strconv.Itoa(i)
				call := func() error {
					_, err := p.CallTool(ctx, srv, mcppool.Call{Tool: tool, Scope: scope})
					return err
				}
				require.NoError(b, p.Prewarm(ctx, srv, 1))
				timed("spare-ns/call", call)
				for range 3 {
					timed("warm-ns/call", call)
				}
				s, err := p.Acquire(ctx, srv, mcppool.Borrow{Scope: "held " + scope})
				require.NoError(b, err)
				timed("first-ns/call", func() error {
					_, err := s.CallTool(ctx, mcppool.Call{Tool: tool})
					return err
				})
				s.Release()
				p.CloseServer(srv)
			}
			reportMedians(b, took)
		})
	}
}

// reportMedians reports the median of each unit.
func reportMedians(b *testing.B, took map[string][]time.Duration) {
	b.Helper()
	for unit, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2]), unit)
	}
}

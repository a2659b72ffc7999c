package cluster_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/memdir"
)

// BenchmarkCall is a call of a tool that answers 1 KB: by the pool alone, by the node that
// owns the scope, and by another replica of the same process.
func BenchmarkCall(b *testing.B) {
	store, srv := memdir.New(), child(b)
	patient := func(o *cluster.Options, _ *mcppool.Options) { o.TTL = 0 }
	owner, other := join(b, store, "a", patient), join(b, store, "b", patient)
	ctx := context.Background()
	call := mcppool.Call{Tool: "echo", Args: map[string]any{"text": strings.Repeat("x", 1000)}, Scope: "s"}
	bench := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, r := range map[string]replica{"local": owner, "remote": other} {
		if _, err := owner.CallTool(ctx, srv, call); err != nil {
			b.Fatal(err)
		}
		bench(name, func() error { _, err := r.CallTool(ctx, srv, call); return err })
	}
	bench("pool", func() error { _, err := owner.pool.CallTool(ctx, srv, call); return err })
}

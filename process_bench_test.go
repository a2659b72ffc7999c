package mcppool_test

import (
	"testing"

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

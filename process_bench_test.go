package mcppool_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/hostile"
)

// BenchmarkWarmProcessCall is one goroutine's calls on the session of a child
// process that is as fast as can be.
func BenchmarkWarmProcessCall(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	name, traits, _ := strings.Cut(hostile.Env("fast"), "=")
	srv := mcppool.Server{Command: self, Env: map[string]string{name: traits}}
	p := realPool(b, nil)
	ctx := b.Context()
	call := mcppool.Call{Tool: "echo", Scope: "s"}
	_, err = p.CallTool(ctx, srv, call)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.CallTool(ctx, srv, call); err != nil {
			b.Fatal(err)
		}
	}
}

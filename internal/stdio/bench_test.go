package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mcppool/mcppool/internal/stdio"
)

// The server answers for nearly nothing, so that the client is what is measured.
func benchmarkCall(b *testing.B, callers int, args string) {
	b.Helper()
	cfg := serverConfig(b, "fast")
	c, err := stdio.Start(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	var left = make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			r := stdio.ToolCall{Tool: "echo", Args: json.RawMessage(args)}
			for range left {
				answer, err := c.Call(ctx, r)
				if err != nil {
					b.Error(err)
					return
				}
				answer.Release()
			}
		})
	}
	wg.Wait()
}

func BenchmarkCall(b *testing.B) { benchmarkCall(b, 1, `{}`) }

func BenchmarkCall64Callers(b *testing.B) { benchmarkCall(b, 64, `{}`) }

func BenchmarkCallResult(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 10 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			benchmarkCall(b, 1, fmt.Sprintf(`{"n":%d}`, size))
		})
	}
}

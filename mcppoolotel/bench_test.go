package mcppoolotel_test

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// BenchmarkWarmCall is a call that waits for nothing, with spans that nobody
// exports.
func BenchmarkWarmCall(b *testing.B) {
	spans := sdktrace.NewTracerProvider()
	numbers := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	for _, bc := range []struct {
		name string
		opts *mcppoolotel.Options // nil without this module
	}{
		{"plain", nil},
		{"metrics", &mcppoolotel.Options{TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: numbers}},
		{"spans", &mcppoolotel.Options{TracerProvider: spans, MeterProvider: noopmetric.NewMeterProvider()}},
		{"both", &mcppoolotel.Options{TracerProvider: spans, MeterProvider: numbers}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			f := &fakes{}
			f.call = func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				f.sent = f.sent[:0]
				return &mcp.CallToolResult{}, nil
			}
			opts := &mcppool.Options{Dial: f.dial}
			telemetry := mcppoolotel.New(bc.opts)
			if bc.opts != nil {
				opts.Trace = telemetry.Trace()
			}
			pool, err := mcppool.New(opts)
			require.NoError(b, err)
			defer pool.Close()
			call := pool.CallTool
			if bc.opts != nil {
				call = telemetry.Wrap(pool).CallTool
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), stdio, mcppool.Call{Tool: "open", Scope: "s"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

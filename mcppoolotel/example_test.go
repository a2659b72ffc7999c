package mcppoolotel_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// Two calls of one conversation, the first of which starts the server. A program
// has an OTLP exporter in place of the two that keep things in memory.
func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter()
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	reader := sdkmetric.NewManualReader()
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	telemetry := mcppoolotel.New(&mcppoolotel.Options{TracerProvider: tracing, MeterProvider: metrics, PoolName: "tools"})
	pool, err := mcppool.New(&mcppool.Options{Trace: telemetry.Trace()})
	if err != nil {
		log.Fatal(err)
	}
	telemetry.Attach(pool)
	tools := telemetry.Wrap(pool)

	// This test is its own server: one with a tool that adds.
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	srv := mcppool.Server{Command: self, Env: map[string]string{telemetrytest.ServerEnv: mcpServer}}

	turn, span := tracing.Tracer("example").Start(ctx, "invoke_agent")
	for i := range 2 {
		_, err = tools.CallTool(turn, srv, mcppool.Call{
			Tool: "add", Args: map[string]int{"a": 1, "b": i}, Scope: mcppool.Scope("project", "thread"),
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	span.End()

	printTree(spans.GetSpans(), span.SpanContext().SpanID().String(), "")

	var now metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &now); err != nil {
		log.Fatal(err)
	}
	for _, m := range now.ScopeMetrics[0].Metrics {
		if m.Name == "mcppool.call.ended" {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				if p.Value > 0 {
					fmt.Println(m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value)
				}
			}
		}
	}

	if err := telemetry.Close(); err != nil {
		log.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// invoke_agent
	//   tools/call add
	//     mcppool.connect
	//       mcppool.spawn
	//       mcppool.handshake
	//     mcppool.wait.connect
	//   tools/call add
	// mcppool.call.ended mcppool.call.outcome=ok,mcppool.pool.name=tools 2
}

// printTree prints a span and what is below it.
func printTree(all tracetest.SpanStubs, id, indent string) {
	for _, s := range all {
		if s.SpanContext.SpanID().String() == id {
			fmt.Println(indent + s.Name)
		}
	}
	for _, s := range all {
		if s.Parent.SpanID().String() == id {
			printTree(all, s.SpanContext.SpanID().String(), indent+"  ")
		}
	}
}

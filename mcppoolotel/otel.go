// Package mcppoolotel shows what an mcppool.Pool does as OpenTelemetry spans and
// metrics, and hands the trace on to the servers.
//
//	opts := &mcppoolotel.Options{PoolName: "tools"}
//	pool, err := mcppool.New(&mcppool.Options{Trace: mcppoolotel.Trace(opts)})
//	tools := mcppoolotel.Wrap(pool, opts)          // call tools through this
//	gauges, err := mcppoolotel.Observe(pool, opts) // and gauges.Unregister() when the pool is closed
//
// The three are independent: Wrap makes the span of a call and puts its trace
// context into the request; Trace makes the spans below it and the histograms;
// Observe makes gauges and counters of the pool's Stats.
//
// Names, attributes and units that begin with mcp, gen_ai, jsonrpc, rpc, network,
// server and error are those of the OpenTelemetry semantic conventions for GenAI
// and MCP, v0.1.0
// (https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/docs/gen-ai/mcp.md),
// whose status is "development"; process.pid is that of the general ones. What they
// have no name for begins with mcppool.
package mcppoolotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

const scopeName = "github.com/mcppool/mcppool/mcppoolotel"

// Options say where spans and metrics go. The zero value of each field is the
// default given with it, and nil Options are all defaults.
type Options struct {
	// TracerProvider; default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider
	// MeterProvider; default: otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
	// Propagator writes the trace context into requests; default: that of
	// otel.GetTextMapPropagator() at the time of [Wrap], or W3C trace context and
	// baggage when none is set there.
	Propagator propagation.TextMapPropagator
	// PoolName tells several pools of a process apart, as the attribute
	// mcppool.pool.name; default: no such attribute.
	PoolName string
	// MaxTools is how many tool names the metrics show; further ones are
	// "_OTHER", since names come from models and servers. Default 200, negative
	// none.
	MaxTools int
}

func (o *Options) tracer() trace.Tracer {
	p := o.TracerProvider
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(scopeName, trace.WithInstrumentationVersion(mcppool.Version))
}

func (o *Options) meter() metric.Meter {
	p := o.MeterProvider
	if p == nil {
		p = otel.GetMeterProvider()
	}
	return p.Meter(scopeName, metric.WithInstrumentationVersion(mcppool.Version))
}

func (o *Options) propagator() propagation.TextMapPropagator {
	p := o.Propagator
	if p == nil {
		p = otel.GetTextMapPropagator()
		if len(p.Fields()) == 0 {
			p = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
		}
	}
	return p
}

const defaultMaxTools = 200

func (o *Options) maxTools() int {
	if o.MaxTools == 0 {
		return defaultMaxTools
	}
	return o.MaxTools
}

// common is what every span and metric has.
func (o *Options) common() []attribute.KeyValue {
	if o.PoolName == "" {
		return nil
	}
	return []attribute.KeyValue{keyPool.String(o.PoolName)}
}

func orDefaults(o *Options) *Options {
	if o == nil {
		return &Options{}
	}
	return o
}

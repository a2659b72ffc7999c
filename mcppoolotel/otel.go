// Package mcppoolotel shows what an mcppool.Pool does as OpenTelemetry spans and
// metrics, and hands the trace on to the servers.
//
//	telemetry := mcppoolotel.New(&mcppoolotel.Options{PoolName: "tools"})
//	pool, err := mcppool.New(&mcppool.Options{Trace: telemetry.Trace()})
//	...
//	telemetry.Attach(pool)
//	tools := telemetry.Wrap(pool) // call tools through this
//
// The three are independent: Trace makes the spans below that of a call and the
// histograms; Attach makes gauges and counters of the pool's Stats; Wrap makes the
// span of a call and puts its trace context into the request.
//
// Names, attributes and units that begin with mcp, gen_ai, jsonrpc, rpc, network,
// server and error are those of the OpenTelemetry semantic conventions for GenAI
// and MCP, v0.1.0
// (https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/docs/gen-ai/mcp.md),
// whose status is "development"; process.pid is that of the general ones. What they
// have no name for begins with mcppool.
package mcppoolotel

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
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
	// otel.GetTextMapPropagator() at the time of [Telemetry.Wrap], or W3C trace context and
	// baggage when none is set there.
	Propagator propagation.TextMapPropagator
	// PoolName tells several pools of a process apart, as the attribute
	// mcppool.pool.name; default: no such attribute.
	PoolName string
	// MaxTools is how many tool names the metrics show; further ones are
	// "_OTHER", since names come from models and servers. Default 200, negative
	// none.
	MaxTools int
	// MaxServers is how many names of servers the metrics show, likewise. Default
	// 50, negative none.
	MaxServers int
}

// Telemetry shows one pool. Its methods may be called from any goroutine.
type Telemetry struct {
	opts                              Options
	tracer                            trace.Tracer
	common                            []attribute.KeyValue
	operation, session, connect, wait metric.Float64Histogram
	tools, codes, servers             *bounded
	pool                              atomic.Pointer[mcppool.Pool]
	observing                         metric.Registration // nil when it couldn't be made
	// connects has a *connecting for each connect that is under way, and protocols
	// the version that each open session speaks, by the session's id. The pool
	// reports the end of each connect, and later the close of each session that
	// connected, so that none stays.
	connects, protocols sync.Map
}

// buckets are the boundaries that the conventions give for all their durations.
var buckets = metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

// New makes the telemetry of a pool that is yet to be made: its Trace goes into
// [mcppool.Options], and the pool into [Telemetry.Attach]. Nil options are the
// defaults. Pools that share a MeterProvider need different PoolNames. Instruments
// that can't be made are reported to otel.Handle, and left out.
func New(opts *Options) *Telemetry {
	t := &Telemetry{}
	if opts != nil {
		t.opts = *opts
	}
	o := &t.opts
	meter := o.meter()
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), buckets)
		if err != nil {
			otel.Handle(err)
		}
		if h == nil {
			return noop.Float64Histogram{}
		}
		return h
	}
	t.tracer, t.common = o.tracer(), o.common()
	t.operation = histogram("mcp.client.operation.duration",
		"The duration of the MCP request or notification as observed on the sender from the time it was sent until the response or ack is received.")
	t.session = histogram("mcp.client.session.duration",
		"The duration of the MCP session as observed on the MCP client.")
	t.connect = histogram("mcppool.connect.duration", "How long it took to start a server and shake hands with it.")
	t.wait = histogram("mcppool.wait.duration", "How long a call that couldn't go on at once waited.")
	t.tools = newBounded(orDefault(o.MaxTools, defaultMaxTools))
	t.servers = newBounded(orDefault(o.MaxServers, defaultMaxServers))
	t.codes = newBounded(maxCodes)
	t.observe(meter)
	return t
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

const (
	defaultMaxTools   = 200
	defaultMaxServers = 50
)

// common is what every span and metric has.
func (o *Options) common() []attribute.KeyValue {
	if o.PoolName == "" {
		return nil
	}
	return []attribute.KeyValue{keyPool.String(o.PoolName)}
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

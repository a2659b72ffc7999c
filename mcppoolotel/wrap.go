package mcppoolotel

import (
	"context"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

// Pool is a [mcppool.Pool] that makes a client span of each of its CallTool's calls.
type Pool struct {
	*mcppool.Pool
	telemetry  *Telemetry
	propagator propagation.TextMapPropagator
}

// Wrap returns pool as one that makes a client span of each call, from its waits to
// its answer, and puts the trace context into the call's _meta (SEP-414), on a copy:
// the caller's Meta stays as it is. With [Telemetry.Trace] in the pool's options the
// span has the session too, and the waits and the connect below it.
func (t *Telemetry) Wrap(pool *mcppool.Pool) *Pool {
	return &Pool{Pool: pool, telemetry: t, propagator: t.opts.propagator()}
}

// inCall is what the ctx of a wrapped call holds.
type inCall struct {
	span trace.Span
	// bound is what metrics may say of the session that the call is sent to. Only
	// the call's own goroutine touches it.
	bound []attribute.KeyValue
}

type inCallKey struct{}

// CallTool is [mcppool.Pool.CallTool] in a span.
func (p *Pool) CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error) {
	attrs := slices.Concat(p.telemetry.common, callAttrs(text(call.Tool)), transportAttrs(srv.IsHTTP()), addressAttrs(&srv))
	ctx, span := p.telemetry.tracer.Start(ctx, spanName(call.Tool), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(keyServer.String(text(srv.String())))
	}
	call.Meta = p.inject(ctx, call.Meta)
	ctx = context.WithValue(ctx, inCallKey{}, &inCall{span: span})
	res, err := p.Pool.CallTool(ctx, srv, call)
	fail(span, failureOf(res != nil && res.IsError, err))
	return res, err
}

// inject returns meta with the trace context in it.
func (p *Pool) inject(ctx context.Context, meta *mcp.Meta) *mcp.Meta {
	carrier := propagation.MapCarrier{}
	p.propagator.Inject(ctx, carrier)
	if len(carrier) == 0 {
		return meta
	}
	var m mcp.Meta
	if meta != nil {
		m = *meta
	}
	fields := make(map[string]any, len(m.AdditionalFields)+len(carrier))
	maps.Copy(fields, m.AdditionalFields)
	if carrier.Get("traceparent") != "" {
		delete(fields, "tracestate") // it belongs to the traceparent that is replaced
	}
	for name, value := range carrier {
		fields[name] = value
	}
	m.AdditionalFields = fields
	return &m
}

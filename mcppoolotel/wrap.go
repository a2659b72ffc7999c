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

// Caller calls tools. A [mcppool.Pool] is one.
type Caller interface {
	CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error)
}

// Wrap gives a Caller that makes a client span of each call, from its waits to its
// answer, and puts the trace context into the call's _meta (SEP-414), on a copy:
// the caller's Meta stays as it is. With [Trace] in the pool's options the span
// tells the session too, and has the waits and the connect below it.
func Wrap(pool Caller, opts *Options) Caller {
	o := orDefaults(opts)
	return &wrapper{next: pool, tracer: o.tracer(), propagator: o.propagator(), common: o.common()}
}

type wrapper struct {
	next       Caller
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	common     []attribute.KeyValue
}

// inCall is what the ctx of a wrapped call holds.
type inCall struct {
	span trace.Span
	// bound is what metrics may say of the session that the call is sent to. Only
	// the call's own goroutine touches it.
	bound []attribute.KeyValue
}

type inCallKey struct{}

func (w *wrapper) CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error) {
	attrs := slices.Concat(w.common, callAttrs(text(call.Tool)), transportAttrs(srv.IsHTTP()), addressAttrs(&srv))
	ctx, span := w.tracer.Start(ctx, spanName(call.Tool), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(keyServer.String(text(srv.String())))
	}
	call.Meta = w.inject(ctx, call.Meta)
	ctx = context.WithValue(ctx, inCallKey{}, &inCall{span: span})
	res, err := w.next.CallTool(ctx, srv, call)
	fail(span, failureOf(res != nil && res.IsError, err))
	return res, err
}

// inject gives meta with the trace context in it.
func (w *wrapper) inject(ctx context.Context, meta *mcp.Meta) *mcp.Meta {
	carrier := propagation.MapCarrier{}
	w.propagator.Inject(ctx, carrier)
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

package mcppoolotel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

// Trace returns what goes into [mcppool.Options] as Trace, alone or with others
// through [mcppool.MergeTraces].
//
// Its spans, for waits and connects, are made when they end, with the time at
// which they began. It makes the span of a tool call only where there is no
// [Telemetry.Wrap], as in [mcppool.Pool.Do].
func (t *Telemetry) Trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitEnd:        t.waitEnd,
		ConnectBegin:   t.connectBegin,
		ProcessStarted: t.processStarted,
		ConnectEnd:     t.connectEnd,
		CallBegin:      t.callBegin,
		CallEnd:        t.callEnd,
		SessionClosed:  t.sessionClosed,
	}
}

func (t *Telemetry) waitEnd(ctx context.Context, i mcppool.WaitEndInfo) {
	f := failureOf(false, i.Err)
	attrs := append(slices.Clone(t.common), keyWaitFor.String(string(i.For)))
	t.record(ctx, t.wait, i.Took, f, slices.Concat(attrs, t.serverAttr(i.Origin)))
	if trace.SpanContextFromContext(ctx).IsValid() { // a wait alone is no trace
		t.past(ctx, "mcppool.wait."+string(i.For), trace.SpanKindInternal, i.Took, f, append(attrs, originAttrs(i.Origin)...))
	}
}

func (t *Telemetry) callBegin(ctx context.Context, i mcppool.CallBeginInfo) {
	if c, ok := ctx.Value(inCallKey{}).(*inCall); ok {
		c.bound = t.boundAttrs(i.Origin)
		if c.span.IsRecording() {
			c.span.SetAttributes(append(originAttrs(i.Origin), c.bound...)...)
			c.span.AddEvent(sentEvent)
		}
	}
}

func (t *Telemetry) callEnd(ctx context.Context, i mcppool.CallEndInfo) {
	if i.Outcome == mcppool.OutcomeNotSent {
		return // the duration is that of requests that were sent
	}
	f := failureOf(i.Outcome == mcppool.OutcomeToolError, i.Err)
	var bound []attribute.KeyValue
	if c, wrapped := ctx.Value(inCallKey{}).(*inCall); wrapped {
		bound = c.bound // as it was at the beginning: the session may be gone by now
		c.span.SetAttributes(requestAttrs(i.RequestID)...)
	} else {
		bound = t.boundAttrs(i.Origin)
		attrs := slices.Concat(t.common, callAttrs(text(i.Tool)), bound, originAttrs(i.Origin), requestAttrs(i.RequestID))
		t.past(ctx, spanName(i.Tool), trace.SpanKindClient, i.Took, f, attrs)
	}
	t.record(ctx, t.operation, i.Took, f, slices.Concat(t.common, callAttrs(t.tools.of(text(i.Tool))), bound, t.serverAttr(i.Origin)))
}

func (t *Telemetry) sessionClosed(ctx context.Context, i mcppool.SessionClosedInfo) {
	bound := t.boundAttrs(i.Origin)
	t.protocols.Delete(i.SessionID)
	var f failure
	switch i.Reason {
	case mcppool.ReasonCrashed, mcppool.ReasonTimeout, mcppool.ReasonWedged, mcppool.ReasonLeaked, mcppool.ReasonPanicked:
		f.kind = string(i.Reason)
	}
	t.record(ctx, t.session, i.Lived, f, slices.Concat(t.common, bound, t.serverAttr(i.Origin)))
}

// serverAttr is what metrics call a server.
func (t *Telemetry) serverAttr(from mcppool.Origin) []attribute.KeyValue {
	name := t.servers.of(text(from.ServerName()))
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{keyServer.String(name)}
}

// boundAttrs is what spans and metrics say of a session.
func (t *Telemetry) boundAttrs(from mcppool.Origin) []attribute.KeyValue {
	attrs := transportAttrs(from.HTTP)
	if version, ok := t.protocols.Load(from.SessionID); ok {
		attrs = append(attrs, keyProtocol.String(version.(string)))
	}
	return attrs
}

// record adds a duration to a histogram.
func (t *Telemetry) record(ctx context.Context, h metric.Float64Histogram, took time.Duration, f failure, attrs []attribute.KeyValue) {
	if !h.Enabled(ctx) {
		return
	}
	if f.code != "" {
		f.code = t.codes.of(f.code)
		f.kind = f.code
	}
	h.Record(ctx, took.Seconds(), metric.WithAttributes(append(f.attrs(), attrs...)...))
}

// past makes the span of what has just ended. It needs no memory of the
// beginning, so that nothing stays of what never ends.
func (t *Telemetry) past(ctx context.Context, name string, kind trace.SpanKind, took time.Duration, f failure, attrs []attribute.KeyValue) {
	end := time.Now()
	_, span := t.begin(ctx, name, kind, end.Add(-took), attrs)
	finish(span, f, end)
}

func (t *Telemetry) begin(ctx context.Context, name string, kind trace.SpanKind, at time.Time, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

func finish(span trace.Span, f failure, at time.Time) {
	fail(span, f)
	span.End(trace.WithTimestamp(at))
}

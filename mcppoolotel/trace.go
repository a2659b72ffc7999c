package mcppoolotel

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

// buckets are the boundaries that the conventions give for all their durations.
var buckets = metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

// Trace gives what goes into [mcppool.Options] as Trace, alone or with others
// through [mcppool.MergeTraces]. One Trace serves one pool.
//
// Its spans, for waits and connects, are made when they end, with the time at
// which they began. It makes the span of a tool call only where there is no
// [Wrap], as in [mcppool.Pool.Do]. Instruments that can't be made are reported to
// otel.Handle, and left out.
func Trace(opts *Options) *mcppool.Trace { return newTelemetry(opts).hooks() }

func newTelemetry(opts *Options) *telemetry {
	o := orDefaults(opts)
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
	return &telemetry{
		tracer: o.tracer(),
		common: o.common(),
		operation: histogram("mcp.client.operation.duration",
			"The duration of the MCP request or notification as observed on the sender from the time it was sent until the response or ack is received."),
		session: histogram("mcp.client.session.duration",
			"The duration of the MCP session as observed on the MCP client."),
		connect: histogram("mcppool.connect.duration",
			"How long it took to start a server and shake hands with it."),
		wait: histogram("mcppool.wait.duration",
			"How long a call that couldn't go on at once waited."),
		tools: newBounded(o.maxTools()),
		codes: newBounded(maxCodes),
	}
}

func (t *telemetry) hooks() *mcppool.Trace {
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

type telemetry struct {
	tracer                            trace.Tracer
	common                            []attribute.KeyValue
	operation, session, connect, wait metric.Float64Histogram
	tools, codes                      *bounded
	// connects has a *connecting for each connect that is under way, and protocols
	// the version that each open session speaks, by the session's id. The pool tells
	// of the end of each connect, and later of the close of each session that
	// connected, so that none stays.
	connects, protocols sync.Map
}

func (t *telemetry) waitEnd(ctx context.Context, from mcppool.Origin, what mcppool.WaitFor, took time.Duration, err error) {
	f := failureOf(false, err)
	attrs := append(slices.Clone(t.common), keyWaitFor.String(string(what)))
	t.record(ctx, t.wait, took, f, attrs)
	if trace.SpanContextFromContext(ctx).IsValid() { // a wait alone is no trace
		t.past(ctx, "mcppool.wait."+string(what), trace.SpanKindInternal, took, f, append(attrs, originAttrs(from)...))
	}
}

func (t *telemetry) callBegin(ctx context.Context, from mcppool.Origin, _ string) {
	if c, ok := ctx.Value(inCallKey{}).(*inCall); ok {
		c.bound = t.boundAttrs(from)
		if c.span.IsRecording() {
			c.span.SetAttributes(append(originAttrs(from), c.bound...)...)
			c.span.AddEvent(sentEvent)
		}
	}
}

func (t *telemetry) callEnd(ctx context.Context, from mcppool.Origin, tool string, done mcppool.CallDone) {
	if done.Outcome == mcppool.OutcomeNotSent {
		return // the duration is that of requests that were sent
	}
	f := failureOf(done.Outcome == mcppool.OutcomeToolError, done.Err)
	var bound []attribute.KeyValue
	if c, wrapped := ctx.Value(inCallKey{}).(*inCall); wrapped {
		bound = c.bound // as it was at the beginning: the session may be gone by now
		c.span.SetAttributes(requestAttrs(done.RequestID)...)
	} else {
		bound = t.boundAttrs(from)
		attrs := slices.Concat(t.common, callAttrs(text(tool)), bound, originAttrs(from), requestAttrs(done.RequestID))
		t.past(ctx, spanName(tool), trace.SpanKindClient, done.Took, f, attrs)
	}
	t.record(ctx, t.operation, done.Took, f, slices.Concat(t.common, callAttrs(t.tools.of(text(tool))), bound))
}

func (t *telemetry) sessionClosed(from mcppool.Origin, why mcppool.CloseReason, lived time.Duration) {
	bound := t.boundAttrs(from)
	t.protocols.Delete(from.SessionID)
	var f failure
	switch why {
	case mcppool.ReasonCrashed, mcppool.ReasonTimeout, mcppool.ReasonWedged, mcppool.ReasonLeaked, mcppool.ReasonPanicked:
		f.kind = string(why)
	}
	t.record(context.Background(), t.session, lived, f, slices.Concat(t.common, bound))
}

// boundAttrs is what metrics may say of a session.
func (t *telemetry) boundAttrs(from mcppool.Origin) []attribute.KeyValue {
	attrs := transportAttrs(from.HTTP)
	if version, ok := t.protocols.Load(from.SessionID); ok {
		attrs = append(attrs, keyProtocol.String(version.(string)))
	}
	return attrs
}

// record adds a duration to a histogram.
func (t *telemetry) record(ctx context.Context, h metric.Float64Histogram, took time.Duration, f failure, attrs []attribute.KeyValue) {
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
func (t *telemetry) past(ctx context.Context, name string, kind trace.SpanKind, took time.Duration, f failure, attrs []attribute.KeyValue) {
	end := time.Now()
	_, span := t.begin(ctx, name, kind, end.Add(-took), attrs)
	finish(span, f, end)
}

func (t *telemetry) begin(ctx context.Context, name string, kind trace.SpanKind, at time.Time, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

func finish(span trace.Span, f failure, at time.Time) {
	fail(span, f)
	span.End(trace.WithTimestamp(at))
}

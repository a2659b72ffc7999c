package mcppoolotel

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
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
	// starts has the processes of each session that is connecting, by its id.
	starts sync.Map
	// sessions has the bounded attributes of each open session, by its id. The
	// pool tells of a close after the connect, so that none stays.
	sessions sync.Map
}

func (t *telemetry) waitEnd(ctx context.Context, from mcppool.Origin, what mcppool.WaitFor, took time.Duration, err error) {
	f := failureOf(false, err)
	attrs := append(slices.Clone(t.common), keyWaitFor.String(string(what)))
	t.record(ctx, t.wait, took, f, attrs)
	if trace.SpanContextFromContext(ctx).IsValid() { // a wait alone is no trace
		t.past(ctx, "mcppool.wait."+string(what), trace.SpanKindInternal, took, f, append(attrs, originAttrs(from)...))
	}
}

// processStart is a process that was started for a session.
type processStart struct {
	at  time.Time
	pid int
}

// processStarted runs on the goroutine of the connect, as connectEnd does.
func (t *telemetry) processStarted(_ context.Context, from mcppool.Origin, pid int) {
	known, _ := t.starts.Load(from.SessionID)
	starts, _ := known.([]processStart)
	t.starts.Store(from.SessionID, append(starts, processStart{time.Now(), pid}))
}

func (t *telemetry) connectEnd(ctx context.Context, from mcppool.Origin, done mcppool.ConnectDone) {
	bound := transportAttrs(from.HTTP)
	if done.Info != nil && slices.Contains(mcp.ValidProtocolVersions, done.Info.ProtocolVersion) {
		bound = append(bound, keyProtocol.String(done.Info.ProtocolVersion))
	}
	if done.Err == nil {
		t.sessions.Store(from.SessionID, bound)
	}
	f := failureOf(false, done.Err)
	attrs := slices.Concat(t.common, bound, []attribute.KeyValue{keySpare.Bool(done.Spare)})
	t.record(ctx, t.connect, done.Took, f, attrs)
	end := time.Now()
	begun := end.Add(-done.Took)
	attrs = append(attrs, originAttrs(from)...)
	t.between(ctx, "mcppool.connect", trace.SpanKindInternal, begun, end, f, attrs, func(ctx context.Context) {
		known, _ := t.starts.LoadAndDelete(from.SessionID)
		starts, _ := known.([]processStart)
		t.connectParts(ctx, begun, end, starts, f, done.Err)
	})
}

// connectParts makes the spans of a connect's parts: the start of the process, and
// the handshake with it. When the server was started again, that ended the first
// handshake.
func (t *telemetry) connectParts(ctx context.Context, begun, end time.Time, starts []processStart, f failure, err error) {
	part := func(name string, begin, end time.Time, f failure, attrs ...attribute.KeyValue) {
		t.between(ctx, name, trace.SpanKindInternal, begin, end, f, append(slices.Clone(t.common), attrs...), nil)
	}
	if len(starts) == 0 {
		var start *mcppool.StartError
		if errors.As(err, &start) && start.Phase == "start" {
			part("mcppool.spawn", begun, end, f)
		}
		return
	}
	part("mcppool.spawn", begun, starts[0].at, failure{}, keyPID.Int(starts[0].pid))
	for i, s := range starts {
		until, how := end, f
		if i+1 < len(starts) {
			until, how = starts[i+1].at, failure{kind: "restarted", text: "the server did not go on after server/discover"}
		}
		part("mcppool.handshake", s.at, until, how, keyPID.Int(s.pid))
	}
}

func (t *telemetry) callBegin(ctx context.Context, from mcppool.Origin, _ string) {
	if c, ok := ctx.Value(inCallKey{}).(*inCall); ok {
		c.session = t.boundAttrs(from)
		if c.span.IsRecording() {
			c.span.SetAttributes(append(originAttrs(from), c.session...)...)
			c.span.AddEvent(sentEvent)
		}
	}
}

func (t *telemetry) callEnd(ctx context.Context, from mcppool.Origin, tool string, done mcppool.CallDone) {
	if done.Outcome == mcppool.OutcomeNotSent {
		return // the duration is that of requests that were sent
	}
	f := failureOf(done.Outcome == mcppool.OutcomeToolError, done.Err)
	var id []attribute.KeyValue
	if done.RequestID != 0 {
		id = append(id, keyRequestID.String(strconv.FormatInt(done.RequestID, 10)))
	}
	c, wrapped := ctx.Value(inCallKey{}).(*inCall)
	var bound []attribute.KeyValue
	if wrapped {
		bound = c.session // as it was at the beginning: the session may be gone by now
		c.span.SetAttributes(id...)
	} else {
		bound = t.boundAttrs(from)
		attrs := slices.Concat(t.common, callAttrs(text(tool)), bound, originAttrs(from), id)
		t.past(ctx, spanName(tool), trace.SpanKindClient, done.Took, f, attrs)
	}
	t.record(ctx, t.operation, done.Took, f, slices.Concat(t.common, callAttrs(t.tools.of(text(tool))), bound))
}

func (t *telemetry) sessionClosed(from mcppool.Origin, why mcppool.CloseReason, lived time.Duration) {
	bound := t.boundAttrs(from)
	t.sessions.Delete(from.SessionID)
	var f failure
	switch why {
	case mcppool.CloseCrashed, mcppool.CloseTimeout, mcppool.CloseWedged, mcppool.CloseLeaked, mcppool.ClosePanicked:
		f.kind = string(why)
	}
	t.record(context.Background(), t.session, lived, f, slices.Concat(t.common, bound))
}

// boundAttrs is what metrics may say of a session.
func (t *telemetry) boundAttrs(from mcppool.Origin) []attribute.KeyValue {
	attrs, _ := t.sessions.Load(from.SessionID)
	bound, _ := attrs.([]attribute.KeyValue)
	return bound
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
	t.between(ctx, name, kind, end.Add(-took), end, f, attrs, nil)
}

// between makes a span of the past. below, unless it is nil, makes those below it.
func (t *telemetry) between(
	ctx context.Context, name string, kind trace.SpanKind, begin, end time.Time, f failure,
	attrs []attribute.KeyValue, below func(context.Context),
) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(begin), trace.WithAttributes(attrs...))
	if below != nil {
		below(ctx)
	}
	fail(span, f)
	span.End(trace.WithTimestamp(end))
}

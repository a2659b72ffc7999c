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
// whose status is "development". What they have no name for begins with mcppool.
package mcppoolotel

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
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

// The attributes of the conventions.
const (
	keyMethod          attribute.Key = "mcp.method.name"
	keySession         attribute.Key = "mcp.session.id"
	keyProtocol        attribute.Key = "mcp.protocol.version"
	keyTool            attribute.Key = "gen_ai.tool.name"
	keyOperation       attribute.Key = "gen_ai.operation.name"
	keyStatus          attribute.Key = "rpc.response.status_code"
	keyErrorType       attribute.Key = "error.type"
	keyTransport       attribute.Key = "network.transport"
	keyNetworkProtocol attribute.Key = "network.protocol.name"
	keyAddress         attribute.Key = "server.address"
	keyPort            attribute.Key = "server.port"
)

// The attributes of the pool's own.
const (
	keyPool    attribute.Key = "mcppool.pool.name"
	keyServer  attribute.Key = "mcppool.server"
	keyWaitFor attribute.Key = "mcppool.wait.for"
	keySpare   attribute.Key = "mcppool.connect.spare"
	keyState   attribute.Key = "mcppool.session.state"
	keyReason  attribute.Key = "mcppool.close.reason"
	keyOutcome attribute.Key = "mcppool.call.outcome"
)

const (
	methodCall    = "tools/call"
	operationTool = "execute_tool"
	// other is the conventions' word for what has no value of its own.
	other = "_OTHER"
	// sentEvent parts the waits of a call from the call itself.
	sentEvent = "mcppool.call.sent"
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
	span      trace.Span
	transport []attribute.KeyValue
	// session is of the session that the call is sent to. Only the call's own
	// goroutine touches it.
	session []attribute.KeyValue
}

type inCallKey struct{}

func (w *wrapper) CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error) {
	transport, address := transportOf(&srv)
	attrs := slices.Concat(w.common, callAttrs(text(call.Tool)), transport, address)
	ctx, span := w.tracer.Start(ctx, spanName(call.Tool), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(keyServer.String(text(srv.String())))
	}
	call.Meta = w.inject(ctx, call.Meta)
	ctx = context.WithValue(ctx, inCallKey{}, &inCall{span: span, transport: transport})
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
		WaitEnd:       t.waitEnd,
		ConnectEnd:    t.connectEnd,
		CallBegin:     t.callBegin,
		CallEnd:       t.callEnd,
		SessionClosed: t.sessionClosed,
	}
}

type telemetry struct {
	tracer                            trace.Tracer
	common                            []attribute.KeyValue
	operation, session, connect, wait metric.Float64Histogram
	tools, codes                      *bounded
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

func (t *telemetry) connectEnd(ctx context.Context, from mcppool.Origin, done mcppool.ConnectDone) {
	var bound []attribute.KeyValue
	if c, ok := ctx.Value(inCallKey{}).(*inCall); ok {
		bound = slices.Clone(c.transport)
	}
	if done.Info != nil && slices.Contains(mcp.ValidProtocolVersions, done.Info.ProtocolVersion) {
		bound = append(bound, keyProtocol.String(done.Info.ProtocolVersion))
	}
	if done.Err == nil {
		t.sessions.Store(from.SessionID, bound)
	}
	f := failureOf(false, done.Err)
	attrs := slices.Concat(t.common, bound, []attribute.KeyValue{keySpare.Bool(done.Spare)})
	t.record(ctx, t.connect, done.Took, f, attrs)
	t.past(ctx, "mcppool.connect", trace.SpanKindInternal, done.Took, f, append(attrs, originAttrs(from)...))
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
	c, wrapped := ctx.Value(inCallKey{}).(*inCall)
	var bound []attribute.KeyValue
	if wrapped {
		// As they were at the beginning: the session may be gone by now.
		bound = slices.Concat(c.transport, c.session)
	} else {
		bound = t.boundAttrs(from)
		attrs := slices.Concat(t.common, callAttrs(text(tool)), bound, originAttrs(from))
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
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(end.Add(-took)), trace.WithAttributes(attrs...))
	fail(span, f)
	span.End(trace.WithTimestamp(end))
}

// Observed is what has numbers. A [mcppool.Pool] is one.
type Observed interface {
	Stats() mcppool.Stats
}

// Observe makes metrics of the pool's Stats, which are asked for once for each
// collection. Unregister what it gives when the pool is closed, which the metrics
// keep in memory otherwise. Pools that are observed with the same MeterProvider
// need different [Options.PoolName]s. It fails when the MeterProvider does, and
// then nothing is observed.
func Observe(pool Observed, opts *Options) (metric.Registration, error) {
	o := orDefaults(opts)
	meter := o.meter()
	var (
		all    []metric.Observable
		failed []error
	)
	gauge := func(name, unit, description string) metric.Int64Observable {
		g, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, failed = append(all, g), append(failed, err)
		return g
	}
	counter := func(name, unit, description string) metric.Int64Observable {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, failed = append(all, c), append(failed, err)
		return c
	}
	sessions := gauge("mcppool.session.count", "{session}", "Sessions that aren't closed, by state.")
	idle := gauge("mcppool.session.idle.count", "{session}", "Sessions that are kept and that nobody uses.")
	spares := gauge("mcppool.session.spare.count", "{session}", "Connected sessions in hand.")
	processes := gauge("mcppool.process.count", "{process}", "Child processes that were started and haven't ended.")
	waiting := gauge("mcppool.waiting.count", "{call}", "Calls that wait at a limit.")
	opened := counter("mcppool.session.opened", "{session}", "Sessions that connected.")
	refused := counter("mcppool.session.failed", "{session}", "Sessions that didn't connect.")
	closed := counter("mcppool.session.closed", "{session}", "Sessions that ended, by reason.")
	calls := counter("mcppool.call.ended", "{call}", "Tool calls that ended, by outcome, those that were never sent included.")
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	common := o.common()
	with := func(key attribute.Key, value string) metric.ObserveOption {
		return metric.WithAttributes(append(slices.Clone(common), key.String(value))...)
	}
	plain := metric.WithAttributes(common...)
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := pool.Stats()
		to.ObserveInt64(sessions, int64(s.Queued), with(keyState, "queued"))
		to.ObserveInt64(sessions, int64(s.Connecting), with(keyState, "connecting"))
		to.ObserveInt64(sessions, int64(s.Live), with(keyState, "live"))
		to.ObserveInt64(sessions, int64(s.Closing), with(keyState, "closing"))
		to.ObserveInt64(idle, int64(s.Idle), plain)
		to.ObserveInt64(spares, int64(s.Spares), plain)
		to.ObserveInt64(processes, int64(s.Processes), plain)
		to.ObserveInt64(waiting, int64(s.Waiting), plain)
		to.ObserveInt64(opened, int64(s.Opened), plain)
		to.ObserveInt64(refused, int64(s.Failures), plain)
		for why, n := range s.Closed {
			to.ObserveInt64(closed, int64(n), with(keyReason, string(why)))
		}
		for how, n := range s.Outcomes {
			to.ObserveInt64(calls, int64(n), with(keyOutcome, string(how)))
		}
		return nil
	}, all...)
}

func callAttrs(tool string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyMethod.String(methodCall), keyOperation.String(operationTool)}
	if tool != "" {
		attrs = append(attrs, keyTool.String(tool))
	}
	return attrs
}

// originAttrs are for spans alone: there is no end of sessions.
func originAttrs(from mcppool.Origin) []attribute.KeyValue {
	return []attribute.KeyValue{keySession.String(from.SessionID), keyServer.String(text(from.Server))}
}

func spanName(tool string) string {
	return strings.TrimSpace(methodCall + " " + text(tool))
}

// transportOf says how a server is reached, and for spans where.
func transportOf(srv *mcppool.Server) (transport, address []attribute.KeyValue) {
	if !srv.IsHTTP() {
		return []attribute.KeyValue{keyTransport.String("pipe")}, nil
	}
	transport = []attribute.KeyValue{keyTransport.String("tcp"), keyNetworkProtocol.String("http")}
	u, err := url.Parse(srv.URL)
	if err != nil || u.Hostname() == "" {
		return transport, nil
	}
	address = append(address, keyAddress.String(text(u.Hostname())))
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	return transport, append(address, keyPort.Int(port))
}

// failure is how an operation failed; the zero value is that it didn't.
type failure struct {
	kind string // error.type
	code string // of a JSON-RPC error
	text string // for people: never of what a server wrote, but the message of its JSON-RPC error
}

func (f failure) attrs() []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if f.kind != "" {
		attrs = append(attrs, keyErrorType.String(f.kind))
	}
	if f.code != "" {
		attrs = append(attrs, keyStatus.String(f.code))
	}
	return attrs
}

func fail(span trace.Span, f failure) {
	if f.kind != "" {
		span.SetAttributes(f.attrs()...)
		span.SetStatus(codes.Error, f.text)
	}
}

// failureOf sorts the errors of the pool. README.md lists the kinds.
func failureOf(toolError bool, err error) failure {
	var (
		rpc    *mcppool.RPCError
		start  *mcppool.StartError
		lost   *mcppool.LostError
		config *mcppool.ConfigError
	)
	switch {
	case err == nil && toolError:
		return failure{kind: "tool_error"}
	case err == nil:
		return failure{}
	case errors.As(err, &start):
		return failure{kind: "start_failed", text: text("the server did not " + start.Phase + inBrackets(start.Exit))}
	case errors.As(err, &lost):
		return failure{kind: "session_lost", text: text("the session was lost" + inBrackets(lost.Exit))}
	case errors.As(err, &rpc): // of this call, for that of a handshake is in a StartError
		code := strconv.Itoa(rpc.Code)
		return failure{kind: code, code: code, text: text(rpc.Message)}
	case errors.As(err, &config):
		return failure{kind: "invalid_config", text: text(config.Error())}
	}
	for _, known := range []struct {
		err  error
		kind string
	}{
		{mcppool.ErrServerClosed, "server_closed"},
		{mcppool.ErrClosed, "pool_closed"},
		{mcppool.ErrBusy, "busy"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return failure{kind: known.kind, text: known.err.Error()}
		}
	}
	return failure{kind: other}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

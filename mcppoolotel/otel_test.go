package mcppoolotel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

func TestACallIsFollowedThroughItsWaitsItsConnectAndItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{connectTime: 3 * time.Second, protocol: "2025-06-18", call: slowCalls(time.Second)}
		b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{PoolName: "tools"})
		begun := time.Now()
		ctx, agent := b.tracing.Tracer("test").Start(t.Context(), "invoke_agent")
		require.NoError(t, b.call(ctx, stdio, "open"))
		agent.End()

		span := b.one(t, "tools/call open")
		require.Equal(t, trace.SpanKindClient, span.SpanKind())
		require.Equal(t, agent.SpanContext().SpanID(), span.Parent().SpanID())
		require.Equal(t, codes.Unset, span.Status().Code)
		require.Equal(t, begun, span.StartTime())
		require.Equal(t, begun.Add(4*time.Second), span.EndTime())
		session := attrs(span)["mcp.session.id"]
		require.Equal(t, map[string]any{
			"mcp.method.name":       "tools/call",
			"gen_ai.operation.name": "execute_tool",
			"gen_ai.tool.name":      "open",
			"network.transport":     "pipe",
			"mcp.protocol.version":  "2025-06-18",
			"mcp.session.id":        session,
			"mcppool.server":        stdio.String(),
			"mcppool.pool.name":     "tools",
		}, attrs(span))
		require.NotEmpty(t, session)
		require.Len(t, span.Events(), 1)
		require.Equal(t, "mcppool.call.sent", span.Events()[0].Name)
		require.Equal(t, begun.Add(3*time.Second), span.Events()[0].Time)

		for name, want := range map[string]map[string]any{
			"mcppool.wait.connect": {"mcppool.wait.for": "connect"},
			"mcppool.connect":      {"mcppool.connect.spare": false, "network.transport": "pipe", "mcp.protocol.version": "2025-06-18"},
		} {
			below := b.one(t, name)
			want["mcp.session.id"], want["mcppool.server"], want["mcppool.pool.name"] = session, stdio.String(), "tools"
			require.Equal(t, want, attrs(below))
			require.Equal(t, trace.SpanKindInternal, below.SpanKind())
			require.Equal(t, span.SpanContext().SpanID(), below.Parent().SpanID())
			require.Equal(t, begun, below.StartTime())
			require.Equal(t, begun.Add(3*time.Second), below.EndTime())
		}
		require.Len(t, b.spans.Ended(), 4)

		require.NoError(t, b.call(t.Context(), stdio, "open"))
		require.Len(t, b.spans.Ended(), 5, "a warm call has nothing below it")
	})
}

func TestWaitsAtALimitAndForATurnAreSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(400 * time.Millisecond)}
		b := newBench(t, f, mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}}, mcppoolotel.Options{})
		done := make(chan error, 3)
		go func() { done <- b.call(t.Context(), stdio, "first") }()
		synctest.Wait()
		go func() { done <- b.call(t.Context(), stdio, "turn") }()
		synctest.Wait()
		go func() {
			_, err := b.tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: "limit", Scope: "another"})
			done <- err
		}()
		for range 3 {
			require.NoError(t, <-done)
		}
		for wait, tool := range map[string]string{"turn": "turn", "limit": "limit"} {
			span, below := b.one(t, "tools/call "+tool), b.one(t, "mcppool.wait."+wait)
			require.Equal(t, span.SpanContext().SpanID(), below.Parent().SpanID())
			require.Equal(t, span.StartTime(), below.StartTime())
			require.Positive(t, below.EndTime().Sub(below.StartTime()))
		}
	})
}

func TestEachFailureHasItsErrorType(t *testing.T) {
	type outcome struct {
		kind, code, text string
		sent             bool // so that it is in the metric of operations
	}
	answers := func(res *mcp.CallToolResult, err error) *fakes {
		return &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, err }}
	}
	for name, tc := range map[string]struct {
		f    *fakes
		opts mcppool.Options
		srv  mcppool.Server
		do   func(b *bench)
		want outcome
	}{
		"tool error":     {f: answers(mcp.NewToolResultError("secret of the tool"), nil), want: outcome{kind: "tool_error", sent: true}},
		"JSON-RPC error": {f: answers(nil, &mcppool.RPCError{Code: -32602, Message: "no\nsuch \xfftool"}), want: outcome{"-32602", "-32602", "no\uFFFDsuch \uFFFDtool", true}},
		"undecodable":    {f: answers(nil, errors.New("secret of the server")), want: outcome{kind: "_OTHER", sent: true}},
		"lost": {f: &fakes{call: func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.Close()
			return nil, errors.New("secret of the server")
		}}, want: outcome{kind: "session_lost", text: "the session was lost", sent: true}},
		"timeout":   {f: &fakes{call: slowCalls(time.Hour)}, want: outcome{kind: "timeout", text: "context deadline exceeded", sent: true}},
		"too late":  {f: &fakes{connectTime: time.Hour}, opts: mcppool.Options{ConnectTimeout: -1}, want: outcome{kind: "timeout", text: "context deadline exceeded"}},
		"cancelled": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) {}, want: outcome{kind: "cancelled", text: "context canceled", sent: true}},
		"closed": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) { b.pool.CloseServer(stdio) },
			want: outcome{kind: "server_closed", text: mcppool.ErrServerClosed.Error(), sent: true}},
		"pool closed": {f: &fakes{call: slowCalls(time.Hour)}, do: func(b *bench) { b.pool.Close() },
			want: outcome{kind: "pool_closed", text: mcppool.ErrClosed.Error(), sent: true}},
		"start failed": {f: &fakes{connectErr: &mcppool.RPCError{Code: -32000, Message: "secret of the server"}},
			want: outcome{kind: "start_failed", text: "the server did not connect"}},
		"bad input": {f: &fakes{}, srv: mcppool.Server{Command: "a\x00b"}, want: outcome{kind: "invalid_config", text: "mcppool: Server.Command contains a NUL byte"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tc.f, tc.opts, mcppoolotel.Options{})
				if tc.srv.Command == "" {
					tc.srv = stdio
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					b.call(ctx, tc.srv, "open")
				}()
				if tc.do != nil {
					synctest.Wait()
					tc.do(b)
					cancel()
				}
				<-ended
				span := b.one(t, "tools/call open")
				got := outcome{text: span.Status().Description}
				got.kind, _ = attrs(span)["error.type"].(string)
				got.code, _ = attrs(span)["rpc.response.status_code"].(string)
				operations := points(b.collect(t)["mcp.client.operation.duration"])
				for labels := range operations {
					got.sent = strings.Contains(labels, "error.type="+got.kind)
					require.Equal(t, got.code != "", strings.Contains(labels, "rpc.response.status_code="), labels)
				}
				require.Equal(t, tc.want, got)
				require.Equal(t, codes.Error, span.Status().Code)
				for _, s := range b.spans.Ended() {
					require.NotContains(t, fmt.Sprint(s.Attributes(), s.Status()), "secret")
				}
			})
		})
	}
}

func TestBusyIsAnErrorType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := mcppool.Limits{MaxProcesses: 1, MaxWait: time.Second}
		b := newBench(t, &fakes{call: slowCalls(time.Hour)}, mcppool.Options{Limits: limits}, mcppoolotel.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.call(ctx, stdio, "first") }()
		synctest.Wait()
		_, err := b.tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: "second", Scope: "another"})
		require.ErrorIs(t, err, mcppool.ErrBusy)
		require.Equal(t, "busy", attrs(b.one(t, "tools/call second"))["error.type"])
		cancel()
		<-ended
	})
}

func TestACallThatWasNotSentHasNoDuration(t *testing.T) {
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, mcppool.NotSent(errors.New("the pipe is full"))
	}}
	b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{})
	require.Error(t, b.call(t.Context(), stdio, "open"))
	require.Equal(t, "_OTHER", attrs(b.one(t, "tools/call open"))["error.type"])
	require.NotContains(t, b.collect(t), "mcp.client.operation.duration")
}

func TestTextsFromElsewhereAreCut(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	long := strings.Repeat("é", 1<<16)
	require.NoError(t, b.call(t.Context(), stdio, long))
	require.NoError(t, b.call(t.Context(), stdio, "x"+long)) // cut within a letter
	for _, s := range b.spans.Ended() {
		for _, text := range []any{s.Name(), attrs(s)["gen_ai.tool.name"]} {
			if text != nil {
				require.Less(t, len(text.(string)), 300)
				require.True(t, utf8.ValidString(text.(string)))
			}
		}
	}
}

func TestACallInASpareTellsItsTransport(t *testing.T) {
	b := newBench(t, &fakes{protocol: "2025-06-18"}, mcppool.Options{}, mcppoolotel.Options{})
	require.NoError(t, b.pool.Prewarm(t.Context(), stdio, 1))
	require.NoError(t, b.call(t.Context(), stdio, "open"))
	require.Equal(t, true, attrs(b.one(t, "mcppool.connect"))["mcppool.connect.spare"])
	for labels := range points(b.collect(t)["mcp.client.operation.duration"]) {
		require.Contains(t, labels, "mcp.protocol.version=2025-06-18,network.transport=pipe")
	}
}

func TestTheTraceContextGoesIntoACopyOfMeta(t *testing.T) {
	member, err := baggage.NewMember("user", "alice")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	parent := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
	})
	f := &fakes{}
	b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{})
	ctx := baggage.ContextWithBaggage(trace.ContextWithRemoteSpanContext(t.Context(), parent), bag)
	meta := &mcp.Meta{ProgressToken: "p", AdditionalFields: map[string]any{"own": 1, "traceparent": "stale"}}
	_, err = b.tools.CallTool(ctx, stdio, mcppool.Call{Tool: "open", Scope: "s", Meta: meta})
	require.NoError(t, err)

	require.Equal(t, map[string]any{"own": 1, "traceparent": "stale"}, meta.AdditionalFields)
	require.Len(t, f.sent, 1)
	span := b.one(t, "tools/call open").SpanContext()
	require.Equal(t, parent.TraceID(), span.TraceID())
	require.Equal(t, &mcp.Meta{ProgressToken: "p", AdditionalFields: map[string]any{
		"own":         1,
		"traceparent": fmt.Sprintf("00-%s-%s-01", span.TraceID(), span.SpanID()),
		"tracestate":  "vendor=1",
		"baggage":     "user=alice",
	}}, f.sent[0])
}

func TestAStaleTracestateDoesNotOutliveItsTraceparent(t *testing.T) {
	f := &fakes{}
	b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{})
	meta := &mcp.Meta{AdditionalFields: map[string]any{"tracestate": "old=1"}}
	_, err := b.tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: "open", Meta: meta})
	require.NoError(t, err)
	require.NotContains(t, f.sent[0].AdditionalFields, "tracestate")
	require.Contains(t, f.sent[0].AdditionalFields, "traceparent")
}

func TestWithoutATraceMetaIsLeftAlone(t *testing.T) {
	f := &fakes{}
	pool, err := mcppool.New(&mcppool.Options{Dial: f.dial})
	require.NoError(t, err)
	defer pool.Close()
	tools := mcppoolotel.Wrap(pool, nil) // the global providers, which are none
	meta := &mcp.Meta{AdditionalFields: map[string]any{"traceparent": "the caller's"}}
	for _, m := range []*mcp.Meta{nil, meta} {
		_, err = tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: "open", Scope: "s", Meta: m})
		require.NoError(t, err)
	}
	require.Equal(t, []*mcp.Meta{nil, meta}, f.sent)
	require.Same(t, meta, f.sent[1])
	require.Empty(t, otel.GetTextMapPropagator().Fields())
}

func TestARealServerReceivesTheTraceContext(t *testing.T) {
	for _, protocol := range []mcppool.Protocol{mcppool.ProtocolLegacy, mcppool.ProtocolModern} {
		t.Run(string(protocol), func(t *testing.T) {
			b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
			srv := child(t)
			srv.Protocol = protocol
			res, err := b.tools.CallTool(t.Context(), srv, mcppool.Call{Tool: "meta", Scope: "s"})
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(res.Content[0].(mcp.TextContent).Text), &got))
			span := b.one(t, "tools/call meta")
			require.Equal(t, fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()), got["traceparent"])
			require.Equal(t, span.SpanContext().SpanID(), b.one(t, "mcppool.connect").Parent().SpanID())
			require.Contains(t, mcp.ValidProtocolVersions, attrs(span)["mcp.protocol.version"])
		})
	}
}

func TestHTTPServersAreToldByTheirAddressOnSpansOnly(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	for i, tc := range []struct {
		url, host string
		port      int64
	}{
		{"https://user:hunter22@tools.example/mcp?key=hunter22", "tools.example", 443},
		{"http://[::1]:8080/mcp", "::1", 8080},
		{"http://plain.example", "plain.example", 80},
	} {
		tool := fmt.Sprint("t", i)
		require.NoError(t, b.call(t.Context(), mcppool.Server{URL: tc.url, Header: map[string]string{"Authorization": "Bearer hunter22"}}, tool))
		got := attrs(b.one(t, "tools/call "+tool))
		require.Equal(t, tc.host, got["server.address"])
		require.Equal(t, tc.port, got["server.port"])
		require.Equal(t, "tcp", got["network.transport"])
		require.Equal(t, "http", got["network.protocol.name"])
	}
	out := everything(t, b)
	require.NotContains(t, out, "hunter22")
	for labels := range points(b.collect(t)["mcp.client.operation.duration"]) {
		require.NotContains(t, labels, "server.address")
		require.Contains(t, labels, "network.transport=tcp")
	}
}

// everything is all that went out, as text.
func everything(t *testing.T, b *bench) string {
	t.Helper()
	var out strings.Builder
	for _, s := range b.spans.Ended() {
		fmt.Fprintln(&out, s.Name(), s.Attributes(), s.Status(), s.Events(), s.Links())
	}
	for _, m := range b.collect(t) {
		fmt.Fprintln(&out, m.Name, m.Description, points(m))
	}
	return out.String()
}

func TestNamesAndUnitsAreThoseOfTheConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{protocol: "2025-06-18", call: slowCalls(2 * time.Second)}, mcppool.Options{}, mcppoolotel.Options{})
		require.NoError(t, b.call(t.Context(), stdio, "open"))
		time.Sleep(time.Second)
		require.NoError(t, b.pool.Close())
		all := b.collect(t)
		bounds := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

		var operation mcpconv.ClientOperationDuration
		m := all[operation.Name()]
		require.Equal(t, operation.Unit(), m.Unit)
		require.Equal(t, operation.Description(), m.Description)
		data := m.Data.(metricdata.Histogram[float64])
		require.Len(t, data.DataPoints, 1)
		require.Equal(t, bounds, data.DataPoints[0].Bounds)
		require.InDelta(t, 2, data.DataPoints[0].Sum, 0)
		require.Equal(t, attribute.NewSet(
			semconv.McpMethodNameToolsCall,
			semconv.GenAIOperationNameExecuteTool,
			semconv.GenAIToolName("open"),
			semconv.McpProtocolVersion("2025-06-18"),
			semconv.NetworkTransportPipe,
		), data.DataPoints[0].Attributes)

		var session mcpconv.ClientSessionDuration
		m = all[session.Name()]
		require.Equal(t, session.Unit(), m.Unit)
		require.Equal(t, session.Description(), m.Description)
		data = m.Data.(metricdata.Histogram[float64])
		require.Len(t, data.DataPoints, 1)
		require.Equal(t, bounds, data.DataPoints[0].Bounds)
		require.InDelta(t, 3, data.DataPoints[0].Sum, 0)
		require.Equal(t, attribute.NewSet(semconv.McpProtocolVersion("2025-06-18"), semconv.NetworkTransportPipe), data.DataPoints[0].Attributes)

		for key, want := range map[attribute.Key]string{
			semconv.McpSessionIDKey: "mcp.session.id", semconv.RPCResponseStatusCodeKey: "rpc.response.status_code",
			semconv.ErrorTypeKey: "error.type", semconv.ServerAddressKey: "server.address", semconv.ServerPortKey: "server.port",
			semconv.NetworkProtocolNameKey: "network.protocol.name",
		} {
			require.EqualValues(t, want, key)
		}
	})
}

func TestASessionThatEndsBadlyHasAnErrorType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{call: slowCalls(time.Hour)}, mcppool.Options{}, mcppoolotel.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, b.call(ctx, stdio, "open"))
		synctest.Wait()
		require.Equal(t, map[string]float64{"error.type=timeout,network.transport=pipe": 1}, points(b.collect(t)["mcp.client.session.duration"]))
	})
}

func TestMetricsHaveBoundedAttributes(t *testing.T) {
	f := &fakes{protocol: "9999-made-up"}
	code := 0
	f.call = func(_ context.Context, _ *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.Name == "odd" {
			code++
			return nil, &mcppool.RPCError{Code: code}
		}
		return mcp.NewToolResultText(""), nil
	}
	b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{MaxTools: 3})
	for i := range 10 {
		_, err := b.tools.CallTool(t.Context(), stdio, mcppool.Call{Tool: fmt.Sprint("tool-", i), Scope: fmt.Sprint("scope-", i)})
		require.NoError(t, err)
	}
	names := make(map[string]bool)
	for labels := range points(b.collect(t)["mcp.client.operation.duration"]) {
		for kv := range strings.SplitSeq(labels, ",") {
			if name, ok := strings.CutPrefix(kv, "gen_ai.tool.name="); ok {
				names[name] = true
			}
		}
	}
	require.Equal(t, map[string]bool{"tool-0": true, "tool-1": true, "tool-2": true, "_OTHER": true}, names)
	for range 200 {
		require.Error(t, b.call(t.Context(), stdio, "odd"))
	}
	require.NoError(t, b.pool.Close())
	for name, m := range b.collect(t) {
		require.LessOrEqual(t, len(points(m)), 60, name)
		for labels := range points(m) {
			for _, unbounded := range []string{"scope-", "conversation", "session.id", "mcppool.server", "9999"} {
				require.NotContains(t, labels, unbounded, name)
			}
		}
	}
}

func TestToolNamesCanBeLeftOutOfMetrics(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{MaxTools: -1})
	require.NoError(t, b.call(t.Context(), stdio, "open"))
	for labels := range points(b.collect(t)["mcp.client.operation.duration"]) {
		require.NotContains(t, labels, "gen_ai.tool.name")
	}
}

func TestObserveTellsWhatStatsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{call: slowCalls(time.Second)}, mcppool.Options{}, mcppoolotel.Options{PoolName: "a"})
		reg, err := mcppoolotel.Observe(b.pool, &b.opts)
		require.NoError(t, err)
		require.NoError(t, b.call(t.Context(), stdio, "open"))
		done := make(chan error)
		go func() { done <- b.call(t.Context(), mcppool.Server{Command: "other"}, "open") }()
		synctest.Wait()

		all := b.collect(t)
		require.Equal(t, map[string]float64{
			"mcppool.pool.name=a,mcppool.session.state=queued": 0, "mcppool.pool.name=a,mcppool.session.state=connecting": 0,
			"mcppool.pool.name=a,mcppool.session.state=live": 2, "mcppool.pool.name=a,mcppool.session.state=closing": 0,
		}, points(all["mcppool.session.count"]))
		one := func(n float64) map[string]float64 { return map[string]float64{"mcppool.pool.name=a": n} }
		require.Equal(t, one(1), points(all["mcppool.session.idle.count"]))
		require.Equal(t, one(1), points(all["mcppool.session.borrowed.count"]))
		require.Equal(t, one(0), points(all["mcppool.session.spare.count"]))
		require.Equal(t, one(2), points(all["mcppool.process.count"]))
		require.Equal(t, one(0), points(all["mcppool.waiting.count"]))
		require.Equal(t, one(2), points(all["mcppool.session.opened"]))
		require.Equal(t, one(0), points(all["mcppool.session.failed"]))
		require.NoError(t, <-done)

		b.pool.CloseScope("conversation 7")
		synctest.Wait()
		all = b.collect(t)
		require.Equal(t, map[string]float64{"mcppool.close.reason=scope closed,mcppool.pool.name=a": 2}, points(all["mcppool.session.closed"]))
		require.InDelta(t, 2, points(all["mcppool.call.ended"])["mcppool.call.outcome=ok,mcppool.pool.name=a"], 0)

		require.NoError(t, reg.Unregister())
		require.NotContains(t, b.collect(t), "mcppool.session.count")
	})
}

func TestWaitsAndConnectsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{connectTime: 3 * time.Second}, mcppool.Options{}, mcppoolotel.Options{})
		require.NoError(t, b.call(t.Context(), stdio, "open"))
		_, err := b.pool.ListTools(t.Context(), mcppool.Server{Command: "unwrapped"}, "s")
		require.NoError(t, err)
		all := b.collect(t)
		require.Equal(t, "s", all["mcppool.wait.duration"].Unit)
		require.Equal(t, "s", all["mcppool.connect.duration"].Unit)
		require.Equal(t, map[string]float64{"mcppool.wait.for=connect": 6}, points(all["mcppool.wait.duration"]))
		require.Equal(t, map[string]float64{
			"mcppool.connect.spare=false,network.transport=pipe": 6,
		}, points(all["mcppool.connect.duration"]))
		require.Len(t, b.named("mcppool.wait.connect"), 1, "outside of any trace a wait is no span")
	})
}

func TestWithoutWrapTheCallItselfIsASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{protocol: "2025-06-18", call: slowCalls(time.Second)}, mcppool.Options{}, mcppoolotel.Options{})
		ctx, root := b.tracing.Tracer("test").Start(t.Context(), "agent")
		require.NoError(t, b.pool.Do(ctx, stdio, "s", func(ctx context.Context, s *mcppool.Session) error {
			_, err := s.CallTool(ctx, mcppool.Call{Tool: "open"})
			return err
		}))
		span := b.one(t, "tools/call open")
		require.Equal(t, root.SpanContext().SpanID(), span.Parent().SpanID())
		require.Equal(t, trace.SpanKindClient, span.SpanKind())
		require.Equal(t, time.Second, span.EndTime().Sub(span.StartTime()))
		require.Equal(t, "2025-06-18", attrs(span)["mcp.protocol.version"])
		require.Len(t, points(b.collect(t)["mcp.client.operation.duration"]), 1)
	})
}

func TestNothingIsRememberedOfClosedSessions(t *testing.T) {
	tr, remembered := mcppoolotel.TraceForTest(&mcppoolotel.Options{})
	f := &fakes{}
	pool, err := mcppool.New(&mcppool.Options{Dial: f.dial, Trace: tr})
	require.NoError(t, err)
	for i := range 20 {
		scope := fmt.Sprint(i % 10) // empty scopes make one-shot sessions
		if i%3 == 0 {
			scope = ""
		}
		_, err := pool.CallTool(t.Context(), stdio, mcppool.Call{Tool: "open", Scope: scope})
		require.NoError(t, err)
	}
	require.Positive(t, remembered())
	require.NoError(t, pool.Close())
	require.Zero(t, remembered())
}

func TestNoSecretOfAServerGoesOut(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	reg, err := mcppoolotel.Observe(b.pool, &b.opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, reg.Unregister()) }()
	srv := child(t)
	srv.Env["TOKEN"] = "hunter22hunter22"
	srv.Args = []string{"--password", "hunter22hunter22"}
	require.NoError(t, b.call(t.Context(), srv, "add"))
	require.Error(t, b.call(t.Context(), srv, "broken"))
	require.ErrorIs(t, b.call(t.Context(), srv, "die"), mcppool.ErrSessionLost)
	require.NoError(t, b.pool.Close())
	out := everything(t, b)
	require.Contains(t, out, "the session was lost (exit status 7)")
	require.NotContains(t, out, "hunter22")
	require.NotContains(t, out, "conversation 7")
}

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
			if bc.opts != nil {
				opts.Trace = mcppoolotel.Trace(bc.opts)
			}
			pool, err := mcppool.New(opts)
			require.NoError(b, err)
			defer pool.Close()
			var tools mcppoolotel.Caller = pool
			if bc.opts != nil {
				tools = mcppoolotel.Wrap(pool, bc.opts)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tools.CallTool(b.Context(), stdio, mcppool.Call{Tool: "open", Scope: "s"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

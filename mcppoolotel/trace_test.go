package mcppoolotel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
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

func TestACallThatWasNotSentHasNoDuration(t *testing.T) {
	f := &fakes{call: func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, mcppool.MarkNotSent(errors.New("the pipe is full"))
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
		require.Contains(t, labels, "mcp.protocol.version=2025-06-18,mcppool.server=browser,network.transport=pipe")
	}
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
			attribute.String("mcppool.server", "browser"),
		), data.DataPoints[0].Attributes)

		var session mcpconv.ClientSessionDuration
		m = all[session.Name()]
		require.Equal(t, session.Unit(), m.Unit)
		require.Equal(t, session.Description(), m.Description)
		data = m.Data.(metricdata.Histogram[float64])
		require.Len(t, data.DataPoints, 1)
		require.Equal(t, bounds, data.DataPoints[0].Bounds)
		require.InDelta(t, 3, data.DataPoints[0].Sum, 0)
		require.Equal(t, attribute.NewSet(
			semconv.McpProtocolVersion("2025-06-18"), semconv.NetworkTransportPipe, attribute.String("mcppool.server", "browser"),
		), data.DataPoints[0].Attributes)

		for key, want := range map[attribute.Key]string{
			semconv.McpSessionIDKey: "mcp.session.id", semconv.RPCResponseStatusCodeKey: "rpc.response.status_code",
			semconv.ErrorTypeKey: "error.type", semconv.ServerAddressKey: "server.address", semconv.ServerPortKey: "server.port",
			semconv.NetworkProtocolNameKey: "network.protocol.name", semconv.JSONRPCRequestIDKey: "jsonrpc.request.id",
			semconv.ProcessPIDKey: "process.pid",
		} {
			require.EqualValues(t, want, key)
		}
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
	b := newBench(t, f, mcppool.Options{}, mcppoolotel.Options{MaxTools: 3, MaxServers: 3})
	for i := range 10 {
		srv := mcppool.Server{Name: fmt.Sprint("server-", i), Command: "c", Args: []string{fmt.Sprint(i)}}
		_, err := b.tools.CallTool(t.Context(), srv, mcppool.Call{Tool: fmt.Sprint("tool-", i), Scope: fmt.Sprint("scope-", i)})
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
			for _, unbounded := range []string{"scope-", "conversation", "session.id", "server-7", "9999"} {
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

func TestWaitsAndConnectsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{connectTime: 3 * time.Second}, mcppool.Options{}, mcppoolotel.Options{})
		require.NoError(t, b.call(t.Context(), stdio, "open"))
		_, err := b.pool.ListTools(t.Context(), mcppool.Server{Command: "unwrapped"}, mcppool.Borrow{Scope: "s"})
		require.NoError(t, err)
		all := b.collect(t)
		require.Equal(t, "s", all["mcppool.wait.duration"].Unit)
		require.Equal(t, "s", all["mcppool.connect.duration"].Unit)
		require.Equal(t, map[string]float64{"mcppool.server=browser,mcppool.wait.for=connect": 3, "mcppool.server=unwrapped,mcppool.wait.for=connect": 3}, points(all["mcppool.wait.duration"]))
		require.Equal(t, map[string]float64{
			"mcppool.connect.spare=false,mcppool.server=browser,network.transport=pipe":   3,
			"mcppool.connect.spare=false,mcppool.server=unwrapped,network.transport=pipe": 3,
		}, points(all["mcppool.connect.duration"]))
		require.Len(t, b.named("mcppool.wait.connect"), 1, "outside of any trace a wait is no span")
	})
}

func TestWithoutWrapTheCallItselfIsASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{protocol: "2025-06-18", call: slowCalls(time.Second)}, mcppool.Options{}, mcppoolotel.Options{})
		ctx, root := b.tracing.Tracer("test").Start(t.Context(), "agent")
		require.NoError(t, b.pool.Do(ctx, stdio, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
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

func TestTheTransportIsToldWhereNobodyWrapsTheCall(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	for tool, srv := range map[string]mcppool.Server{"pipe": stdio, "tcp": {URL: "http://host/"}} {
		require.NoError(t, b.pool.Do(t.Context(), srv, mcppool.Borrow{Scope: "s"}, func(ctx context.Context, s *mcppool.Session) error {
			_, err := s.CallTool(ctx, mcppool.Call{Tool: tool})
			return err
		}))
		require.Equal(t, tool, attrs(b.one(t, "tools/call "+tool))["network.transport"])
	}
	require.NoError(t, b.pool.Close())
	for _, metric := range []string{"mcp.client.operation.duration", "mcppool.connect.duration", "mcp.client.session.duration"} {
		all := points(b.collect(t)[metric])
		require.Len(t, all, 2, metric)
		for labels := range all {
			require.Equal(t, strings.Contains(labels, "network.transport=tcp"), strings.Contains(labels, "network.protocol.name=http"), labels)
			require.Contains(t, labels, "network.transport=", metric)
		}
	}
}

func TestTheRequestIDIsOnTheSpanOfACallAndOnNoMetric(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	srv := telemetrytest.Child(t, telemetrytest.Raw)
	require.NoError(t, b.call(t.Context(), srv, "tell"))
	require.Error(t, b.call(t.Context(), srv, "missing"))
	require.NoError(t, b.pool.Do(t.Context(), srv, mcppool.Borrow{Scope: "conversation 7"}, func(ctx context.Context, s *mcppool.Session) error {
		_, err := s.CallTool(ctx, mcppool.Call{Tool: "pid"})
		return err
	}))
	first, err := strconv.Atoi(attrs(b.one(t, "tools/call tell"))["jsonrpc.request.id"].(string))
	require.NoError(t, err)
	require.Positive(t, first)
	require.Equal(t, strconv.Itoa(first+1), attrs(b.one(t, "tools/call missing"))["jsonrpc.request.id"])
	require.Equal(t, strconv.Itoa(first+2), attrs(b.one(t, "tools/call pid"))["jsonrpc.request.id"])
	for name, m := range b.collect(t) {
		for labels := range points(m) {
			require.NotContains(t, labels, "jsonrpc", name)
		}
	}
}

func TestARequestWhoseIDIsNotKnownHasNone(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	require.NoError(t, b.call(t.Context(), stdio, "open"))
	require.NotContains(t, attrs(b.one(t, "tools/call open")), "jsonrpc.request.id")
}

func TestNothingIsRememberedOfClosedSessions(t *testing.T) {
	telemetry := mcppoolotel.New(nil)
	remembered := telemetry.Remembered
	f := &fakes{protocol: "2025-06-18"}
	pool, err := mcppool.New(&mcppool.Options{Dial: f.dial, Trace: telemetry.Trace()})
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

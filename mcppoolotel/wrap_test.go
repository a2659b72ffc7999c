package mcppoolotel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

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
	tools := mcppoolotel.New(nil).Wrap(pool) // the global providers, which are none
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
			srv := telemetrytest.Child(t, mcpServer)
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
	out := b.everything(t)
	require.NotContains(t, out, "hunter22")
	for labels := range points(b.collect(t)["mcp.client.operation.duration"]) {
		require.NotContains(t, labels, "server.address")
		require.Contains(t, labels, "network.transport=tcp")
	}
}

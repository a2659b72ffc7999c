package mcppoolotel_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// requireParts looks whether spans follow each other below another, without gaps.
func requireParts(t *testing.T, whole sdktrace.ReadOnlySpan, parts ...sdktrace.ReadOnlySpan) {
	t.Helper()
	at := whole.StartTime()
	for _, p := range parts {
		require.Equal(t, whole.SpanContext().SpanID(), p.Parent().SpanID(), p.Name())
		require.Equal(t, at, p.StartTime(), p.Name())
		at = p.EndTime()
	}
	require.Equal(t, whole.EndTime(), at)
}

func TestAConnectHasTheStartOfTheProcessAndTheHandshakeBelowIt(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{PoolName: "tools"})
	require.NoError(t, b.call(t.Context(), child(t), "add"))
	connect, spawn, handshake := b.one(t, "mcppool.connect"), b.one(t, "mcppool.spawn"), b.one(t, "mcppool.handshake")
	requireParts(t, connect, spawn, handshake)
	require.Positive(t, spawn.EndTime().Sub(spawn.StartTime()))
	require.Positive(t, handshake.EndTime().Sub(handshake.StartTime()))
	pid := attrs(spawn)["process.pid"]
	require.Positive(t, pid)
	require.Equal(t, map[string]any{"process.pid": pid, "mcppool.pool.name": "tools"}, attrs(handshake))
	require.Equal(t, "tools", attrs(spawn)["mcppool.pool.name"])
}

func TestAServerThatIsStartedAgainHasTwoHandshakes(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	require.NoError(t, b.call(t.Context(), childOf(t, "does not know server/discover"), "any"))
	both := b.named("mcppool.handshake")
	require.Len(t, both, 2)
	requireParts(t, b.one(t, "mcppool.connect"), b.one(t, "mcppool.spawn"), both[0], both[1])
	require.Equal(t, "restarted", attrs(both[0])["error.type"])
	require.Equal(t, codes.Unset, both[1].Status().Code)
	require.NotEqual(t, attrs(both[0])["process.pid"], attrs(both[1])["process.pid"])
}

func TestAFailedConnectSaysWhichPartFailed(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	require.Error(t, b.call(t.Context(), mcppool.Server{Command: "/no/such/program"}, "any"))
	require.Equal(t, "start_failed", attrs(b.one(t, "mcppool.spawn"))["error.type"])
	require.Empty(t, b.named("mcppool.handshake"))

	b = newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	srv := childOf(t, "exits")
	srv.Protocol = mcppool.ProtocolLegacy
	require.Error(t, b.call(t.Context(), srv, "any"))
	require.Equal(t, codes.Unset, b.one(t, "mcppool.spawn").Status().Code)
	require.Equal(t, "start_failed", attrs(b.one(t, "mcppool.handshake"))["error.type"])
}

func TestTheSpanOfACallHasTheIdOfItsRequest(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	id := func(span sdktrace.ReadOnlySpan) int {
		n, err := strconv.Atoi(attrs(span)["jsonrpc.request.id"].(string))
		require.NoError(t, err)
		return n
	}
	require.NoError(t, b.call(t.Context(), child(t), "add"))
	require.NoError(t, b.pool.Do(t.Context(), child(t), "conversation 7", func(ctx context.Context, s *mcppool.Session) error {
		_, err := s.CallTool(ctx, mcppool.Call{Tool: "meta"})
		return err
	}))
	require.Equal(t, id(b.one(t, "tools/call add"))+1, id(b.one(t, "tools/call meta")))
	for name, m := range b.collect(t) {
		for point := range points(m) {
			require.NotContains(t, point, "jsonrpc.request.id", name)
		}
	}
}

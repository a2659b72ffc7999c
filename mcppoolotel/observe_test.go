package mcppoolotel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

func TestAnAttachedPoolsStatsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fakes{call: slowCalls(time.Second)}, mcppool.Options{}, mcppoolotel.Options{PoolName: "a"})
		b.telemetry.Attach(b.pool)
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

		require.NoError(t, b.telemetry.Close())
		require.NotContains(t, b.collect(t), "mcppool.session.count")
	})
}

func TestTheBytesOfProcessesAreShown(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	b.telemetry.Attach(b.pool)
	require.NoError(t, b.call(t.Context(), telemetrytest.Child(t, telemetrytest.Raw), "tell"))
	s, all := b.pool.Stats(), b.collect(t)
	require.Positive(t, s.BytesSent)
	require.Greater(t, s.BytesReceived, s.BytesSent)
	for name, n := range map[string]int64{"mcppool.process.sent": s.BytesSent, "mcppool.process.received": s.BytesReceived} {
		require.Equal(t, "By", all[name].Unit)
		require.Equal(t, map[string]float64{"": float64(n)}, points(all[name]))
		require.True(t, all[name].Data.(metricdata.Sum[int64]).IsMonotonic, name)
	}
}

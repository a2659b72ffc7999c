package mcppool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestProcessThatHasGrownTooLargeIsReplaced(t *testing.T) {
	defer mcppool.SetRSSInterval(10 * time.Millisecond)()
	const limit = 256 << 20
	p := realPool(t, &mcppool.Options{Recycle: mcppool.Recycle{MaxRSS: limit}})
	srv := real(t, "state")
	small := say(t, p, srv, "small", "pid", nil)
	large := say(t, p, srv, "large", "pid", nil)
	say(t, p, srv, "large", "grow", map[string]any{"bytes": limit})
	require.Eventually(t, func() bool { return p.Stats().Closed[mcppool.ReasonRecycled] == 1 }, 10*time.Second, 10*time.Millisecond)
	require.NotEqual(t, large, say(t, p, srv, "large", "pid", nil))
	require.Equal(t, small, say(t, p, srv, "small", "pid", nil))
	require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonRecycled])
}

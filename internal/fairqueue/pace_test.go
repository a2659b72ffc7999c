package fairqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/fairqueue"
)

func TestPaceFollowsTheLastTurnsWithinItsBounds(t *testing.T) {
	var p fairqueue.Pace
	require.Equal(t, 100*time.Millisecond, p.For(1000), "nothing is known yet")
	now := time.Second
	for range 50 {
		p.Note(now)
		now += time.Second
	}
	require.InDelta(t, 3*time.Second, p.For(3), float64(10*time.Millisecond))
	require.Equal(t, 30*time.Second, p.For(100))
	for range 50 {
		p.Note(now)
		now += 10 * time.Second
	}
	require.InDelta(t, 10*time.Second, p.For(1), float64(10*time.Millisecond))
}

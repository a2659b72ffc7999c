package stdio

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Nobody would wait for the pipe in vain, but whoever queued the next message would
// write it at the same time.
func TestTheWritersJobEndsWhenThePipeTakesNothingAndAllCallersHaveLeft(t *testing.T) {
	c := &Conn{pending: make(map[int64]*outgoing)}
	o := &outgoing{id: 1, frame: []byte("x\n"), ready: make(chan struct{}, 1)}
	require.True(t, c.out.pushLocked(o))
	c.out.takeLocked()
	require.True(t, c.out.withdrawLocked(o), "a write is under way")
	require.Equal(t, emptied, verdictOf(0, c.written(0, true)))
	require.False(t, c.out.active)
}

func TestAFullPipeIsWaitedForAsLongAsACallerWaits(t *testing.T) {
	c := &Conn{pending: make(map[int64]*outgoing)}
	o := &outgoing{id: 1, frame: []byte("x\n"), ready: make(chan struct{}, 1)}
	require.True(t, c.out.pushLocked(o))
	c.out.takeLocked()
	require.Equal(t, blocked, verdictOf(0, c.written(0, true)))
	require.True(t, c.out.active)
	require.Same(t, o, c.out.first)
}

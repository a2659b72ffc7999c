package turn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/turn"
)

func called(w *turn.Place) bool {
	select {
	case <-w.Called():
		return true
	default:
		return false
	}
}

func TestTheTurnGoesOnInOrderOfArrival(t *testing.T) {
	var l turn.Line
	require.Nil(t, l.Take())
	a, b, c := l.Take(), l.Take(), l.Take()
	require.False(t, called(a))
	l.Leave(b)
	require.False(t, b.Waits())
	l.Leave(nil)
	require.True(t, called(a))
	require.False(t, a.Moved())
	require.False(t, called(b))
	require.False(t, called(c))
	l.Leave(a)
	require.True(t, called(c))
	l.Leave(c)
	require.Nil(t, l.Take(), "nobody has it")
}

func TestThoseSentOnAreSentByOneAnother(t *testing.T) {
	var l turn.Line
	require.Nil(t, l.Take())
	a, b := l.Take(), l.Take()
	l.MoveOn()
	require.True(t, called(a) && a.Moved())
	require.False(t, called(b))
	l.Leave(a)
	require.False(t, called(b), "a never had the turn that it would give up")
	l.MoveOn()
	require.True(t, called(b) && b.Moved())
	l.MoveOn()
	require.NotNil(t, l.Take(), "the turn is still taken")
}

func TestThereAreNoTurnsWhereAllMayGoAtOnce(t *testing.T) {
	l := turn.Line{Overlap: true}
	require.Nil(t, l.Take())
	require.Nil(t, l.Take())
	l.Leave(nil)
	require.Nil(t, l.Take())
}

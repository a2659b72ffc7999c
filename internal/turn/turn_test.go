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

func TestThoseSentOnGoOneByOneInOrder(t *testing.T) {
	var l turn.Line
	require.Nil(t, l.Take())
	a, b, c, d := l.Take(), l.Take(), l.Take(), l.Take()
	l.MoveOn()
	require.True(t, called(a) && a.Moved())
	l.Leave(nil)
	require.False(t, called(b), "the turn leads nowhere")
	l.MoveOn()
	require.False(t, called(b), "they are sent on already")
	l.Leave(b)
	require.False(t, called(c), "b was not the one that goes next")
	l.Leave(a)
	require.True(t, called(c) && c.Moved())
	l.Leave(c)
	require.True(t, called(d) && d.Moved())
	l.Leave(d)
}

func TestTheTurnThatWasGivenIsLedNowhereOnceAllAreSentOn(t *testing.T) {
	var l turn.Line
	require.Nil(t, l.Take())
	a, b, c := l.Take(), l.Take(), l.Take()
	l.Leave(nil)
	require.True(t, called(a) && !a.Moved())
	l.MoveOn()
	require.True(t, called(b) && b.Moved())
	l.Leave(a)
	require.False(t, called(c), "b has yet to leave")
	l.Leave(b)
	require.True(t, called(c))
}

func TestThereAreNoTurnsWhereAllMayGoAtOnce(t *testing.T) {
	l := turn.Line{Overlap: true}
	require.Nil(t, l.Take())
	require.Nil(t, l.Take())
	l.Leave(nil)
	require.Nil(t, l.Take())
}

package turn_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/turn"
)

type (
	line  = turn.Line[string]
	place = turn.Place[string]
)

func called(p *place) bool {
	select {
	case <-p.Called():
		return true
	default:
		return false
	}
}

func opened(of string) *line {
	l := &line{Of: of}
	l.Open()
	return l
}

func TestTheTurnGoesOnInOrderOfArrival(t *testing.T) {
	l := opened("x")
	require.Nil(t, l.Take(1))
	a, b, c := l.Take(2), l.Take(3), l.Take(4)
	require.False(t, called(a))
	l.Leave(b)
	require.False(t, b.Waits())
	l.Leave(nil)
	require.True(t, called(a))
	require.False(t, a.Sent())
	require.False(t, called(b))
	require.False(t, called(c))
	l.Leave(a)
	require.True(t, called(c))
	l.Leave(c)
	require.Nil(t, l.Take(5), "nobody has it")
}

func TestWhoComesBackStandsWhereHisNumberPutsHim(t *testing.T) {
	var l line
	c, b := l.Take(3), l.Take(2)
	a := l.Take(0)
	for _, p := range []*place{a, b, c} {
		require.Same(t, p, l.First())
		l.Leave(p)
	}
	require.Nil(t, l.First())
}

func TestALineOnHoldGivesNoTurn(t *testing.T) {
	var l line
	a, b := l.Take(1), l.Take(2)
	require.False(t, called(a))
	require.True(t, l.Held())
	l.Open()
	require.True(t, called(a))
	l.Hold()
	l.Leave(a)
	require.False(t, called(b))
	require.False(t, l.Stuck())
	l.Open()
	require.True(t, called(b))
}

func TestThoseWhoMoveKeepTheirOrderAndGetTheTurnThatIsFree(t *testing.T) {
	from, to := opened("from"), opened("to")
	require.Nil(t, from.Take(1))
	a, b, c := from.Take(2), from.Take(3), from.Take(4)
	a.Caller = "a"
	from.Hold()
	from.Move(to)
	require.Zero(t, from.Len())
	for _, p := range []*place{a, b, c} {
		require.True(t, called(p) && p.Sent())
		require.Equal(t, "to", p.Last().Of())
	}
	require.Equal(t, "a", a.Last().Caller)
	require.True(t, called(a.Last()) && !called(b.Last()))
	from.Leave(nil)
	to.Leave(a.Last())
	require.True(t, called(b.Last()) && !b.Last().Sent())
	to.Leave(b.Last())
	require.True(t, called(c.Last()))
}

func TestATurnThatIsNotAcceptedCanBeTakenBackAndMoves(t *testing.T) {
	from, to := opened("from"), &line{Of: "to"}
	require.Nil(t, from.Take(1))
	a, b := from.Take(2), from.Take(3)
	from.Leave(nil)
	require.True(t, called(a) && from.Pending())
	from.Hold()
	from.PutBack(a)
	require.False(t, from.Pending())
	from.Move(to)
	require.Same(t, a.Last(), to.First())
	to.Open()
	to.Accept(a.Last())
	require.False(t, to.Pending())
	to.Leave(a.Last())
	require.True(t, called(b.Last()))
	require.Panics(t, func() { to.PutBack(a.Last()) })
}

func TestThoseWhoAreSentAwayLearnWhy(t *testing.T) {
	var l line
	a, b := l.Take(1), l.Take(2)
	why := errors.New("full")
	l.Refuse(why)
	for _, p := range []*place{a, b} {
		require.True(t, called(p) && p.Sent())
		require.Equal(t, why, p.Err())
	}
}

func TestThereAreNoTurnsWhereAllMayGoAtOnce(t *testing.T) {
	l := &line{Overlap: true}
	a, b := l.Take(1), l.Take(2)
	l.Open()
	require.True(t, called(a) && called(b))
	require.Nil(t, l.Take(3))
	l.Leave(a)
	require.Nil(t, l.Take(4))
	require.False(t, l.Pending() || l.Stuck())
}

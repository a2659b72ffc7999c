package poolstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// visit joins any session of a server.
func (w *world) visit(server int, scope string) (*borrow, error) {
	defer w.done()
	b := &borrow{number: w.joins, want: w.want(server, scope)}
	b.want.Any = true
	w.joins++
	if err := w.enter(b); err != nil {
		return nil, err
	}
	w.borrows = append(w.borrows, b)
	return b, nil
}

func inWorld(t *testing.T, limits poolstate.Limits, f func(t *rapid.T, w *world)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, limits)
		f(t, w)
		w.drain()
	})
}

func TestAVisitorIsSentToTheSessionOfItsScopeOrAnyOther(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		server := rapid.SampledFrom([]int{0, 1, 3, 4}).Draw(t, "server")
		a, err := w.join(server, "a")
		require.NoError(t, err)
		w.connected(a.s, nil)
		v, err := w.visit(server, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "scope"))
		require.NoError(t, err)
		require.Same(t, a.s, v.s)
		require.True(t, v.place.Waits(), "it never overtakes the call")
		require.Empty(t, w.connecting)
		w.leave(a, "")
		require.True(t, v.mayCall())
		w.leave(v, "")
		require.Equal(t, poolstate.Live, a.s.Status())
	})
}

func TestASessionBegunForAVisitorIsTheFirstCallersSpare(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		server := rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "server")
		v, err := w.visit(server, "a")
		require.NoError(t, err)
		w.connected(v.s, nil)
		w.leave(v, "")
		require.True(t, v.s.Spare())
		again, err := w.visit(server, "")
		require.NoError(t, err)
		require.Same(t, v.s, again.s)
		w.leave(again, "")
		a, err := w.join(server, "a")
		require.NoError(t, err)
		require.Same(t, v.s, a.s)
		require.True(t, a.mayCall())
		b, err := w.visit(server, "")
		require.NoError(t, err)
		require.Same(t, v.s, b.s)
	})
}

func TestACallThatComesWhileAVisitorsSessionConnectsAdoptsIt(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		server := rapid.SampledFrom([]int{0, 1, 3, 4}).Draw(t, "server")
		v, err := w.visit(server, "")
		require.NoError(t, err)
		a, err := w.join(server, "a")
		require.NoError(t, err)
		require.Same(t, v.s, a.s)
		if rapid.Bool().Draw(t, "leaves early") {
			w.leave(v, "")
			w.connected(a.s, nil)
		} else {
			w.connected(a.s, nil)
			w.leave(v, "")
		}
		require.True(t, a.mayCall())
		again, err := w.join(server, "a")
		require.NoError(t, err)
		require.Same(t, a.s, again.s)
	})
}

func TestAVisitorsSessionMakesRoomForThoseWhoWaitForIt(t *testing.T) {
	inWorld(t, poolstate.Limits{MaxProcesses: 1}, func(t *rapid.T, w *world) {
		v, err := w.visit(0, "")
		require.NoError(t, err)
		w.connected(v.s, nil)
		a, err := w.join(4, "a")
		require.NoError(t, err)
		require.Equal(t, poolstate.Queued, a.s.Status())
		w.leave(v, "")
		require.Equal(t, poolstate.Closing, v.s.Status())
		w.closed(v.s)
		require.Equal(t, poolstate.Connecting, a.s.Status())
	})
}

func TestOneWhoWaitsForAnExclusiveServerTakesTheVisitorsSession(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		v, err := w.visit(1, "")
		require.NoError(t, err)
		w.connected(v.s, nil)
		a, err := w.join(1, "a")
		require.NoError(t, err)
		require.Equal(t, poolstate.Queued, a.s.Status())
		w.leave(v, "")
		require.Same(t, v.s, a.s)
		require.True(t, a.mayCall())
	})
}

func TestAVisitorWhoseSessionIsInDoubtLeavesNoSpare(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		v, err := w.visit(0, "")
		require.NoError(t, err)
		w.connected(v.s, nil)
		w.leave(v, "timeout")
		require.Equal(t, poolstate.Closing, v.s.Status())
	})
}

func TestASessionBegunForAVisitorOfABoundServerIsItsScopesFromTheStart(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		v, err := w.visit(6, "a")
		require.NoError(t, err)
		b, err := w.join(6, "b")
		require.NoError(t, err)
		require.NotSame(t, v.s, b.s)
		a, err := w.join(6, "a")
		require.NoError(t, err)
		require.Same(t, v.s, a.s)

		alone, err := w.visit(6, "")
		require.NoError(t, err)
		require.Contains(t, []*poolstate.Session{a.s, b.s}, alone.s, "any session will do")
	})
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		v, err := w.visit(6, "")
		require.NoError(t, err)
		a, err := w.join(6, "a")
		require.NoError(t, err)
		require.NotSame(t, v.s, a.s)
		w.connected(v.s, nil)
		w.leave(v, "")
		require.Equal(t, poolstate.Closing, v.s.Status(), "it was for the listing alone")
	})
}

func TestNoSessionIsBegunTwiceForOneRemoteVisit(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		v, err := w.visit(5, "a")
		require.NoError(t, err)
		w.connected(v.s, nil)
		w.leave(v, "")
		require.Equal(t, poolstate.Closing, v.s.Status(), "a server at a URL has no spares")
	})
}

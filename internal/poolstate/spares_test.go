package poolstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// warm begins a spare of the first server.
func (w *world) warm() *poolstate.Session {
	connecting, err := w.st.Prewarm(w.want(0, ""), 1, w.now)
	require.NoError(w.t, err)
	w.done()
	require.Len(w.t, connecting, 1)
	return connecting[0]
}

func TestWhoPrewarmedASpareLearnsThatItWasRetiredThoughACallHadTakenIt(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		started, err := w.st.Prewarm(w.want(0, ""), 1, w.now)
		require.NoError(t, err)
		w.done()
		call, err := w.join(0, "a")
		require.NoError(t, err)
		require.Same(t, started[0], call.s, "it is connecting, and the call's")
		w.st.Retire(started[0], errNoLuck, poolstate.Retired, w.now)
		w.done()
		require.Equal(t, errNoLuck, started[0].Cause())
		require.NotSame(t, started[0], call.place.Last().Of(), "the call goes on")
	})
}

func TestCallTakesOverASpareThatIsConnecting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		spare := w.warm()
		scope := rapid.SampledFrom([]string{"a", ""}).Draw(t, "scope")
		b, err := w.join(0, scope)
		require.NoError(t, err)
		require.Same(t, spare, b.s)
		require.Len(t, w.connecting, 1)
		w.connected(spare, nil)
		require.True(t, b.mayCall())
		require.Zero(t, w.st.Counts().Spares)
		w.drain()
	})
}

// A spare that is given up by the call that took it over goes on connecting, and serves
// another scope.
func TestSpareThatIsGivenUpWhileItConnectsStaysOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxPerScope: 1})
		spare := w.warm()
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			b, err := w.join(0, rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "scope"))
			require.NoError(t, err)
			w.leave(b, "")
			require.Equal(t, poolstate.Connecting, spare.Status())
			require.True(t, spare.Spare())
		}
		w.connected(spare, nil)
		require.Equal(t, 1, w.st.Counts().Spares)
		b, err := w.join(0, "c")
		require.NoError(t, err)
		require.True(t, b.mayCall())
		require.Same(t, spare, b.s)
		w.drain()
	})
}

// Calls that took over a spare which doesn't come up get a start of their own, in order.
func TestSpareThatFailsHoldsUpNoCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		spare := w.warm()
		scope := rapid.SampledFrom([]string{"a", ""}).Draw(t, "scope")
		n := 1
		if scope != "" {
			n = rapid.IntRange(1, 4).Draw(t, "callers")
		}
		for range n {
			_, err := w.join(0, scope)
			require.NoError(t, err)
		}
		w.connected(spare, errNoLuck)
		require.Empty(t, w.refused)
		require.Len(t, w.connecting, 1)
		w.connected(w.connecting[0], nil)
		for i, b := range w.borrows {
			require.NotSame(t, spare, b.s)
			require.Equal(t, i == 0, b.mayCall())
		}
		w.drain()
	})
}

// A spare makes room before a session does that has a state, also while it connects.
func TestSpareThatIsConnectingMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 2})
		b := w.up(4, "a")
		w.leave(b, "") // and the server's spare is begun
		spare := w.connecting[0]
		_, err := w.join(3, "b")
		require.NoError(t, err)
		require.Equal(t, poolstate.Closing, spare.Status())
		require.ErrorAs(t, spare.Cause(), new(*poolstate.BusyError))
		require.Equal(t, poolstate.Live, b.s.Status())
		w.drain()
	})
}

// One that uses too much memory is handed out to nobody.
func TestHeavySpareIsEndedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		spare := w.warm()
		w.connected(spare, nil)
		w.st.Heavy(spare, w.now)
		w.done()
		require.Len(t, w.closing, 1)
		b, err := w.join(0, "a")
		require.NoError(t, err)
		require.NotSame(t, spare, b.s)
		w.drain()
	})
}

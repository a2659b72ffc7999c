package poolstate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// Calls of one scope are served in order of arrival, whatever becomes of the sessions
// that they wait for: spares come up, connects fail, sessions are retired while they
// connect, replaced, lost or wedged, and callers take their time to see that they were
// called.
func TestCallsOfAScopeAreServedInOrderOfArrivalWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{MaxCalls: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "MaxCalls")}, poolstate.Limits{})
		w.sleepy = rapid.Bool().Draw(t, "sleepy")
		last := -1
		served := func() {
			for _, b := range w.borrows {
				if b.mayCall() && !b.s.Lost() && !b.s.Stale() && b.number > last {
					for _, other := range w.borrows {
						require.False(t, other.number < b.number && other.number > last,
							"caller %d is served before caller %d", b.number, other.number)
					}
					last = b.number
				}
			}
		}
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			w.now += 10 * time.Millisecond
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 0, 1, 2:
				_, err := w.join(4, "a") // of a server with a spare
				require.NoError(t, err)
			case 3:
				if len(w.connecting) > 0 {
					// Who has waited for a failed connect fails with it.
					err := rapid.SampledFrom([]error{nil, nil, nil, errNoLuck}).Draw(t, "connect")
					s := pick(t, "connect of", w.connecting)
					w.connected(s, err)
					if err != nil {
						w.failWith(s)
					}
				}
			case 4:
				for _, b := range w.borrows {
					if b.mayCall() {
						w.leave(b, rapid.SampledFrom([]poolstate.Reason{"", "", "timeout"}).Draw(t, "why"))
						break
					}
				}
			case 5:
				for s := range w.st.All {
					if s.Linked() {
						w.st.Retire(s, errNoLuck, poolstate.Retired, w.now)
						break
					}
				}
				w.done()
			case 6:
				if live := w.live(); len(live) > 0 {
					w.die(pick(t, "dies", live))
				}
			case 7:
				for _, b := range w.borrows {
					if b.mayCall() && w.st.Doubt(b.s) {
						w.done()
						w.probed(b.s, rapid.Bool().Draw(t, "answers"))
						break
					}
				}
			case 8:
				_, _ = w.st.Prewarm(w.want(4, ""), 1, w.now)
				w.done()
			}
			for _, b := range slices.Clone(w.borrows) {
				if b.called() && rapid.Bool().Draw(t, "looks") {
					w.look(b)
				}
			}
			w.rejoin()
			served()
		}
		w.drain()
	})
}

// failWith takes the callers that waited for the connect of s out.
func (w *world) failWith(s *poolstate.Session) {
	for _, b := range slices.Clone(w.borrows) {
		if b.place != nil && b.place.Last().Err() == nil && b.place.Last().Of() == s {
			w.leave(b, "")
		}
	}
}

// rejoin is what callers do that were given their turn and killed, or find their
// session gone.
func (w *world) rejoin() {
	for _, b := range slices.Clone(w.borrows) {
		if b.place == nil && b.s.Cause() != nil {
			w.leave(b, "")
		}
	}
}

// Sessions that wait for a place start in the order in which they came, and whichever
// can take a spare that comes up does so in that order too.
func TestSparesThatComeUpGoToWhoWaitsForTheLongestTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{
			MaxStarting: rapid.IntRange(1, 2).Draw(t, "MaxStarting"), MaxPerServer: rapid.SampledFrom([]int{0, 3}).Draw(t, "MaxPerServer"),
		})
		last := -1
		for i := range rapid.IntRange(5, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				_, err := w.join(0, fmt.Sprint(i))
				require.NoError(t, err)
			case 2:
				_, _ = w.st.Prewarm(w.want(0, ""), rapid.IntRange(1, 3).Draw(t, "spares"), w.now)
				w.done()
			case 3:
				if len(w.connecting) > 0 {
					w.connected(w.connecting[0], nil)
				}
			}
			for _, b := range w.borrows {
				if b.mayCall() && b.number > last {
					require.Equal(t, last+1, b.number)
					last = b.number
				}
			}
			for _, b := range slices.Clone(w.borrows) {
				if b.mayCall() {
					w.leave(b, "") // one that is idle may make room
				}
			}
			for len(w.closing) > 0 {
				w.closed(w.closing[0])
			}
		}
		w.drain()
	})
}

// The connect of a session that was retired is given up at once, and those who waited
// for it wait for its successor's.
func TestThoseWhoWaitForARetiredConnectWaitForAnotherAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		n := rapid.IntRange(1, 5).Draw(t, "callers")
		for range n {
			_, err := w.join(0, "a")
			require.NoError(t, err)
		}
		old := w.connecting[0]
		w.st.Retire(old, errNoLuck, poolstate.Retired, w.now)
		w.done()
		require.Equal(t, poolstate.Closing, old.Status())
		require.Len(t, w.connecting, 2)
		require.Same(t, w.borrows[0], w.connecting[1].Caller, "it is begun for the first of them")
		w.connected(w.connecting[1], nil)
		for i, b := range w.borrows {
			require.Same(t, w.borrows[0].s, b.s)
			require.Equal(t, i == 0, b.mayCall())
		}
		w.drain()
	})
}

// Who was called in a session that was replaced, and hasn't seen either yet, goes first
// in its successor: before those behind him, for whom a spare is ready, and before those
// who come only now.
func TestWhoWasCalledAndDoesNotKnowItYetIsOvertakenByNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		n := rapid.IntRange(1, 4).Draw(t, "callers")
		for range n {
			_, err := w.join(0, "a")
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "a spare is ready") {
			_, err := w.st.Prewarm(w.want(0, ""), 1, w.now)
			require.NoError(t, err)
			w.done()
			w.connected(w.connecting[1], nil)
		}
		w.sleepy = true
		old := w.connecting[0]
		w.connected(old, nil)
		require.True(t, w.borrows[0].called())
		w.st.Retire(old, errNoLuck, poolstate.Retired, w.now)
		w.done()
		_, err := w.join(0, "a") // and comes too late
		require.NoError(t, err)
		for _, b := range w.borrows[1:] {
			require.False(t, b.called() && !b.place.Last().Waits(), "caller %d has a turn", b.number)
		}
		w.sleepy = false
		if rapid.Bool().Draw(t, "it gives up") {
			w.leave(w.borrows[0], "")
		} else {
			w.look(w.borrows[0])
		}
		for len(w.connecting) > 0 {
			w.connected(w.connecting[0], nil)
		}
		for i, b := range w.borrows {
			require.Equal(t, i == 0, b.mayCall(), "caller %d", i)
		}
		w.drain()
	})
}

func TestNothingIsRememberedOfThoseWhoHadNowhereToGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		for range rapid.IntRange(1, 3).Draw(t, "callers") {
			_, err := w.join(0, "a")
			require.NoError(t, err)
		}
		w.sleepy = true
		s := w.connecting[0]
		w.connected(s, nil)
		w.st.Refuse()
		w.st.Retire(s, errNoLuck, poolstate.Shutdown, w.now)
		w.done()
		for len(w.borrows) > 0 {
			w.look(w.borrows[0])
		}
		w.settle()
		require.Zero(t, w.st.Remembered())
		for _, err := range w.refused {
			require.Equal(t, poolstate.ErrClosed, err)
		}
	})
}

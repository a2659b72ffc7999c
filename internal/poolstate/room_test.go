package poolstate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// settle does the closes that are due, and returns how many sessions that starts.
func (w *world) settle() (started int) {
	before := w.st.Counts().Processes
	closed := len(w.closing)
	for len(w.closing) > 0 {
		w.closed(w.closing[0])
	}
	return w.st.Counts().Processes - before + closed
}

// Each session that is evicted lets one start that has waited, unless callers give up
// or limits change meanwhile: nobody's state is lost in vain. And whenever idle sessions
// could let one start, they do.
func TestNoSessionIsEvictedInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 3})
		limits := poolstate.Limits{
			MaxProcesses: n.Draw(t, "MaxProcesses"), MaxPerServer: n.Draw(t, "MaxPerServer"), MaxPerScope: n.Draw(t, "MaxPerScope"),
		}
		w := newWorld(t, poolstate.Config{}, limits)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			evicted := w.st.Counts().Evicted
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				server := rapid.IntRange(0, 1).Draw(t, "server") // the second one is exclusive
				_, err := w.join(server, rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "scope"))
				require.NoError(t, err)
			case 2:
				if len(w.connecting) > 0 {
					w.connected(pick(t, "connect of", w.connecting), nil)
				}
			case 3:
				var calling []*borrow
				for _, b := range w.borrows {
					if b.mayCall() {
						calling = append(calling, b)
					}
				}
				if len(calling) > 0 {
					w.leave(pick(t, "ends", calling), "")
				}
			}
			evicted = w.st.Counts().Evicted - evicted
			started := w.settle()
			atOnce := uint64(1)
			if limits.MaxPerScope > 0 {
				atOnce = 2 // for one that waits for its server and for its scope
			}
			require.LessOrEqual(t, evicted, uint64(started)*atOnce, "%d were evicted, and %d started", evicted, started)
			require.NoError(t, w.st.CheckQuiet())
		}
		w.drain()
	})
}

// Two sessions wait for an exclusive server and for the limit of all: one idle session
// makes room for the first, and a second one would do so for nobody.
func TestOnlyOneSessionIsEvictedForTwoThatTakeTheSamePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 2})
		for _, scope := range []string{"y", "z"} {
			b, err := w.join(0, scope)
			require.NoError(t, err)
			w.connected(b.s, nil)
		}
		for _, scope := range []string{"a", "b"} {
			_, err := w.join(1, scope)
			require.NoError(t, err)
		}
		w.leave(w.borrows[0], "")
		require.Len(t, w.closing, 1)
		w.leave(w.borrows[0], "")
		require.Len(t, w.closing, 1, "the other one's state is kept")
		w.drain()
	})
}

// One that waits patiently behind a session which can make room is served, although
// somebody before it waits for what nobody can make room for.
func TestPatienceIsNotLostBehindOneWhoWaitsForSomethingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 2})
		lease, err := w.join(1, "lease") // of the exclusive server
		require.NoError(t, err)
		w.connected(lease.s, nil)
		current, err := w.join(0, "busy")
		require.NoError(t, err)
		w.connected(current.s, nil)
		for i := range rapid.IntRange(1, 3).Draw(t, "blocked") {
			_, err := w.join(1, fmt.Sprint("blocked ", i))
			require.NoError(t, err)
		}
		patient, err := w.join(4, "patient")
		require.NoError(t, err)
		for began := w.now; w.now-began < 900*time.Millisecond; w.now += 100 * time.Millisecond {
			next, err := w.join(0, "busy")
			require.NoError(t, err)
			w.leave(current, "")
			current = next
			require.Empty(t, w.closing, "not before a second is over")
		}
		w.now += time.Second
		_, err = w.join(0, "busy")
		require.NoError(t, err)
		w.leave(current, "")
		w.settle()
		require.Equal(t, poolstate.Connecting, patient.s.Status())
		w.drain()
	})
}

// A start that hangs counts for MaxStarting for as long as one may take that doesn't.
func TestStartThatHangsHoldsUpNobodyElses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "MaxStarting")
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxStarting: limit})
		for i := range limit {
			_, err := w.join(0, fmt.Sprint("hangs ", i))
			require.NoError(t, err)
		}
		good, err := w.join(4, "good")
		require.NoError(t, err)
		require.Equal(t, poolstate.Queued, good.s.Status())
		next := w.st.Expire(w.now)
		require.NotZero(t, next)
		w.done()
		require.Equal(t, poolstate.Queued, good.s.Status())
		w.now = next
		w.st.Expire(w.now)
		w.done()
		require.Equal(t, poolstate.Connecting, good.s.Status())
		w.drain()
	})
}

// Sessions of a shared server that were replaced, and still serve somebody, count when
// another one is to be started beside one that is there.
func TestProcessesOfASharedServerCountWhatRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		const concurrent, processes = 2, 2
		for range rapid.IntRange(1, 4).Draw(t, "retired") {
			b, err := w.join(concurrent, "")
			require.NoError(t, err)
			if b.s.Status() == poolstate.Connecting {
				w.connected(b.s, nil)
			}
			w.st.Retire(b.s, errNoLuck, poolstate.Retired, w.now) // and its call goes on
			w.done()
		}
		runs := w.st.Counts().Processes
		for range 5 {
			_, err := w.join(concurrent, "")
			require.NoError(t, err)
		}
		require.LessOrEqual(t, w.st.Counts().Processes, max(runs+1, processes))
		w.drain()
	})
}

// Room is made for all who wait at once, not for one after the other, but for no more
// than may start at once.
func TestEachThatWaitsGetsRoomOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "sessions")
		starting := rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "MaxStarting")
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: n, MaxStarting: starting})
		for i := range n {
			w.leave(w.up(0, fmt.Sprint("idle ", i)), "")
		}
		wait := rapid.IntRange(1, 7).Draw(t, "wait")
		for i := range wait {
			_, err := w.join(4, fmt.Sprint(i))
			require.NoError(t, err)
			room := min(i+1, n)
			if starting > 0 {
				room = min(room, starting)
			}
			require.Len(t, w.closing, room)
		}
		w.drain()
	})
}

// Sessions whose calls overlap take their time to end: for one that waits patiently, one
// of them is ended in a second, and not all.
func TestOneWhoWaitsCostsOneBusySessionASecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 2})
		long := []*borrow{w.up(2, ""), w.up(2, "")}
		_, err := w.join(4, "patient")
		require.NoError(t, err)
		w.now += time.Second
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			w.now += 100 * time.Millisecond
			for range 2 {
				b, err := w.join(2, "")
				require.NoError(t, err)
				if b.mayCall() {
					w.leave(b, "") // while the long ones go on
				}
			}
		}
		stale := 0
		for _, b := range long {
			if b.s.Stale() {
				stale++
			}
		}
		require.Equal(t, 1, stale)
		w.drain()
	})
}

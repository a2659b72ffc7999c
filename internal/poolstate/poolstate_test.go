package poolstate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/poolstate"
)

func TestEveryScheduleKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{
			MaxSessions: rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "MaxSessions"),
			MaxCalls:    rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "MaxCalls"),
			MaxLifetime: rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "MaxLifetime"),
			Backoff: backoff.Config{
				Failures: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "Failures"),
				Initial:  100 * time.Millisecond, Max: time.Second, MinUptime: time.Second, Cap: 10,
			},
		}, drawLimits(t))
		w.sleepy = true
		scope := rapid.SampledFrom([]string{"a", "b", "c", ""})
		server := rapid.IntRange(0, len(w.policies)-1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(server.Draw(t, "server"), scope.Draw(t, "scope"))
			if len(w.connecting) == 0 && len(w.closing) == 0 {
				if err := w.st.CheckQuiet(); err != nil {
					t.Fatalf("at %s: %v", w.now, err)
				}
			}
		}
		w.drain()
	})
}

// Those who wait for one session get their turn in order of arrival, whatever becomes
// of the others.
func TestTurnsGoInOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		var line []*borrow
		for range rapid.IntRange(2, 8).Draw(t, "callers") {
			b, err := w.join(0, "a")
			require.NoError(t, err)
			line = append(line, b)
		}
		w.connected(w.connecting[0], nil)
		for len(line) > 0 {
			for i, b := range line {
				require.Equal(t, i == 0, b.mayCall(), "caller %d of %d", i, len(line))
			}
			i := rapid.IntRange(0, len(line)-1).Draw(t, "leaves")
			w.leave(line[i], "")
			line = slices.Delete(line, i, i+1)
		}
		w.drain()
	})
}

// At a limit for all, the scopes take turns, and each is served in order of arrival.
func TestScopesTakeTurnsAtALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 1})
		w.policies = make([]poolstate.Policy, 32)
		first, err := w.join(31, "first")
		require.NoError(t, err)
		w.connected(first.s, nil)

		scopes := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 20).Draw(t, "scopes")
		queues, names := map[string][]string{}, map[*poolstate.Session]string{}
		var turns []string
		for i, scope := range scopes {
			b, err := w.join(i, scope) // of servers of their own, so that none joins another's session
			require.NoError(t, err)
			names[b.s] = fmt.Sprint(scope, i)
			if len(queues[scope]) == 0 {
				turns = append(turns, scope)
			}
			queues[scope] = append(queues[scope], names[b.s])
		}
		var want []string
		for len(turns) > 0 {
			scope := turns[0]
			want = append(want, queues[scope][0])
			turns, queues[scope] = turns[1:], queues[scope][1:]
			if len(queues[scope]) > 0 {
				turns = append(turns, scope)
			}
		}
		var got []string
		for w.leave(w.borrows[0], ""); len(w.closing) > 0; {
			w.closed(w.closing[0])
			if len(w.connecting) == 0 {
				break
			}
			s := w.connecting[0]
			got = append(got, names[s])
			w.connected(s, nil)
			for _, b := range w.borrows {
				if b.s == s {
					w.leave(b, "")
					break
				}
			}
		}
		require.Equal(t, want, got)
		w.drain()
	})
}

// A shared session that is due serves on when its server is held off, so that no
// successor may be started.
func TestSharedSessionServesOnWhenItsSuccessorMayNotStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{
			MaxCalls: 1,
			Backoff:  backoff.Config{Failures: 1, Initial: time.Hour, Max: time.Hour, MinUptime: time.Hour, Cap: 10},
		}, poolstate.Limits{})
		first, err := w.join(3, "a")
		require.NoError(t, err)
		w.connected(first.s, nil)
		w.leave(first, "")
		b, err := w.join(3, "a") // it is due, and its successor begins
		require.NoError(t, err)
		require.Same(t, first.s, b.s)
		require.Len(t, w.connecting, 1)
		w.connected(w.connecting[0], errNoLuck)
		w.closed(w.closing[0])
		w.leave(b, "")
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			b, err := w.join(3, "b")
			require.NoError(t, err, "the server is held off, and a session of it works")
			require.Same(t, first.s, b.s)
			w.leave(b, "")
		}
		w.drain()
	})
}

// Whoever waits patiently for a process is served soon, although a session that never
// pauses has the only place and impatient callers come and go before it.
func TestPatientCallerIsServedWhateverOthersDo(t *testing.T) {
	for _, busy := range []int{0, 2} { // calls that take turns, and calls that overlap
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 1})
			scope := "busy"
			current, err := w.join(busy, scope)
			require.NoError(t, err)
			w.connected(current.s, nil)
			var impatient []*borrow
			var patient *borrow
			began := w.now
			for range 100 {
				w.now += 100 * time.Millisecond
				next, err := w.join(busy, scope) // before the last one leaves
				require.NoError(t, err)
				w.leave(current, "")
				current = next
				if rapid.Bool().Draw(t, "one-shot") {
					b, err := w.join(1, "")
					require.NoError(t, err)
					impatient = append(impatient, b)
				}
				if len(impatient) > 5 {
					w.leave(impatient[0], "")
					impatient = impatient[1:]
				}
				if patient == nil {
					patient, err = w.join(4, "patient")
					require.NoError(t, err)
				}
				for len(w.closing) > 0 {
					w.closed(w.closing[0])
				}
				for len(w.connecting) > 0 {
					w.connected(w.connecting[0], nil)
				}
				if patient.s.Status() == poolstate.Live {
					break
				}
			}
			require.Equal(t, poolstate.Live, patient.s.Status(), "after %s", w.now-began)
			w.drain()
		})
	}
}

// A limit that was lowered is reached in one step: as many idle sessions end as are
// over, rather than one after the other.
func TestLoweredLimitEndsAsManyIdleSessionsAsAreOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		n, limit := rapid.IntRange(2, 9).Draw(t, "idle"), rapid.IntRange(1, 9).Draw(t, "limit")
		for i := range n {
			b, err := w.join(0, fmt.Sprint(i))
			require.NoError(t, err)
			w.connected(b.s, nil)
			w.leave(b, "")
		}
		w.st.SetLimits(poolstate.Limits{MaxProcesses: limit}, w.now)
		w.done()
		_, err := w.join(0, "new")
		require.NoError(t, err)
		require.Len(t, w.closing, max(n+1-limit, 0))
		w.drain()
	})
}

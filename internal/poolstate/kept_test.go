package poolstate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// A session that was opened as the only one of its server stays the only one, whatever
// others say of that server.
func TestExclusiveSessionIsTheOnlyOneWhateverOthersSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		plain, exclusive := w.want(0, "a"), w.want(0, "b")
		exclusive.Policy = poolstate.Policy{Exclusive: true}
		first, second := plain, exclusive
		if rapid.Bool().Draw(t, "the exclusive one is first") {
			first, second = exclusive, plain
		}
		_, place, err := w.st.Join(first, w.now)
		require.NoError(t, err)
		w.done()
		s := place.Of()
		w.connected(s, nil)
		other, _, err := w.st.Join(second, w.now)
		require.NoError(t, err)
		w.done()
		require.Equal(t, poolstate.Queued, other.Status())
		w.st.Leave(s, place, "", w.now)
		w.done()
		require.Len(t, w.closing, 1)
		w.settle()
		require.Equal(t, poolstate.Connecting, other.Status())
	})
}

// A session whose calls overlap, and that is never idle, is recycled although a limit
// leaves no room for another beside it: it ends with the calls that it has.
func TestSessionThatIsNeverIdleIsRecycledAtAFullLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.SampledFrom([]int{2, 3}).Draw(t, "server")
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 1})
		current := w.up(server, "")
		old := current.s
		w.st.Heavy(old, w.now)
		next, err := w.join(server, "")
		require.NoError(t, err)
		w.leave(current, "")
		if next.s == old {
			w.leave(next, "")
			next, err = w.join(server, "")
			require.NoError(t, err)
		}
		w.settle()
		require.NotSame(t, old, next.s)
		require.Equal(t, poolstate.Connecting, next.s.Status())
		w.drain()
	})
}

// Spares are refilled although a connection can't say that it is lost.
func TestSparesAreRefilledForConnectionsThatAreNeverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		b, err := w.join(4, "a")
		require.NoError(t, err)
		s := w.connecting[0]
		w.connecting = nil
		require.True(t, w.st.Connected(s, nil, w.now))
		w.done()
		w.leave(b, "")
		require.Len(t, w.connecting, 1)
		w.drain()
	})
}

// What ends when it is due ends in steps, between which the lock is others'.
func TestManySessionsThatAreDueEndInSteps(t *testing.T) {
	for _, n := range []int{1, 256, 257, 600} {
		for _, byAge := range []bool{false, true} {
			st, now := poolstate.New(poolstate.Config{}, poolstate.Limits{}), time.Second
			for i := range n {
				w := &poolstate.Want{Key: poolstate.Key{Scope: fmt.Sprint(i)}, Policy: poolstate.Policy{IdleTimeout: time.Hour}}
				s, place, err := st.Join(w, now)
				require.NoError(t, err)
				st.Connected(s, nil, now)
				st.Leave(s, place, "", now)
			}
			require.Equal(t, n, st.Counts().Idle)
			for now += 2 * time.Hour; st.Counts().Idle > 0; {
				before := st.Counts().Idle
				if byAge {
					require.Equal(t, before > 256, st.UnlinkIdle(now, now))
				} else if next := st.Expire(now); before > 256 {
					require.Equal(t, now, next)
				}
				st.Actions()
				require.Equal(t, max(before-256, 0), st.Counts().Idle)
			}
			require.NoError(t, st.Check())
		}
	}
}

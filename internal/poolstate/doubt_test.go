package poolstate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// up joins and connects a session.
func (w *world) up(server int, scope string) *borrow {
	b, err := w.join(server, scope)
	require.NoError(w.t, err)
	if b.s.Status() == poolstate.Connecting {
		w.connected(b.s, nil)
	}
	return b
}

func (w *world) doubt(b *borrow) {
	require.True(w.t, w.st.Doubt(b.s))
	w.done()
}

func TestSessionInDoubtIsProbedAtOnceAndNobodyCallsMeanwhile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "server") // one that overlaps among them
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxPerServer: 1})
		first := w.up(server, "a")
		w.doubt(first)
		require.Len(t, w.probing, 1)
		require.False(t, w.st.Doubt(first.s), "it is being asked")
		w.leave(first, "")
		for range rapid.IntRange(1, 4).Draw(t, "callers") {
			b, err := w.join(server, "a")
			require.NoError(t, err)
			require.False(t, b.mayCall())
			require.Same(t, first.s, b.s)
		}
		answers := rapid.Bool().Draw(t, "answers")
		w.probed(first.s, answers)
		for i, b := range w.borrows {
			require.Equal(t, answers, b.s == first.s, "those in line go on to its successor")
			require.Equal(t, answers && (i == 0 || server == 2), b.mayCall())
		}
		w.drain()
	})
}

func TestWedgedSessionIsEndedUnderThoseWhoShareIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxPerServer: 1})
		sharers := []*borrow{w.up(2, "a"), w.up(2, "b"), w.up(2, "c")}
		if rapid.Bool().Draw(t, "replaced") {
			w.st.Retire(sharers[0].s, errNoLuck, poolstate.Retired, w.now)
			w.done()
		}
		w.doubt(sharers[0])
		w.leave(sharers[0], "")
		w.probed(sharers[0].s, false)
		for _, b := range sharers[1:] {
			require.Equal(t, errNoLuck, b.s.Cause())
		}
		w.drain()
	})
}

func TestDoubtDuringAConnectIsLaidToRestBeforeAnybodysTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		b, err := w.join(rapid.SampledFrom([]int{0, 1, 3, 4}).Draw(t, "server"), "a")
		require.NoError(t, err)
		require.False(t, w.st.Doubt(b.s), "it isn't there yet")
		w.connected(b.s, nil)
		require.False(t, b.mayCall())
		require.Equal(t, []*poolstate.Session{b.s}, w.probing)
		answers := rapid.Bool().Draw(t, "answers")
		w.probed(b.s, answers)
		require.Equal(t, answers, b.mayCall())
		w.drain()
	})
}

func TestSessionInDoubtIsChosenLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		one := w.up(2, "")
		two := w.up(2, "") // the first is busy
		require.NotSame(t, one.s, two.s)
		doubted, other := one, two
		if rapid.Bool().Draw(t, "which") {
			doubted, other = two, one
		}
		w.doubt(doubted)
		w.leave(doubted, "")
		for range 5 {
			require.Same(t, other.s, w.up(2, "").s)
		}
		w.drain()
	})
}

// A start that hangs is no place to wait where another session serves.
func TestSlowStartOfASharedServerIsChosenLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		one := w.up(2, "")
		two, err := w.join(2, "")
		require.NoError(t, err)
		w.now += 10 * time.Second
		for range 3 {
			b, err := w.join(2, "")
			require.NoError(t, err)
			require.Same(t, one.s, b.s)
		}
		require.Equal(t, poolstate.Connecting, two.s.Status())
		w.drain()
	})
}

func TestIdleSessionInDoubtIsEndedForOthersAsAnyOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 1})
		b := w.up(0, "a")
		if rapid.Bool().Draw(t, "inspected") {
			w.leave(b, "")
			require.True(t, w.st.Inspect(b.s, w.now))
			require.False(t, w.st.Inspect(b.s, w.now))
			w.done()
		} else {
			w.doubt(b)
			w.leave(b, "")
		}
		_, err := w.join(0, "b")
		require.NoError(t, err)
		require.Len(t, w.closing, 1)
		w.probed(b.s, rapid.Bool().Draw(t, "answers")) // nobody asks for it any more
		require.Len(t, w.closing, 1)
		w.drain()
	})
}

func TestSpareIsInspectedToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{})
		_, err := w.st.Prewarm(w.want(0, ""), 1, w.now)
		require.NoError(t, err)
		w.done()
		spare := w.connecting[0]
		w.connected(spare, nil)
		var idle []*poolstate.Session
		for s := range w.st.Idle {
			idle = append(idle, s)
		}
		require.Equal(t, []*poolstate.Session{spare}, idle)
		require.True(t, w.st.Inspect(spare, w.now))
		b, err := w.join(0, "a")
		require.NoError(t, err)
		require.Same(t, spare, b.s)
		require.False(t, b.mayCall())
		w.probed(spare, false)
		require.NotSame(t, spare, b.s)
		w.drain()
	})
}

// A session whose server is held off isn't replaced because of its age: what would take
// its place may not start, and its state would be lost for a refusal.
func TestSessionThatIsDueServesOnWhileItsServerIsHeldOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{
			MaxCalls: 1,
			Backoff:  backoff.Config{Failures: 1, Initial: time.Hour, Max: time.Hour, MinUptime: time.Hour, Cap: 10},
		}, poolstate.Limits{})
		b := w.up(0, "a")
		failed, err := w.join(0, "b")
		require.NoError(t, err)
		w.connected(failed.s, errNoLuck)
		w.leave(failed, "")
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			next, err := w.join(0, "a")
			require.NoError(t, err)
			require.Same(t, b.s, next.s)
			w.leave(b, "")
			require.True(t, next.mayCall())
			b = next
		}
		w.drain()
	})
}

// Who is sent on isn't refused for want of room in the queue: it had a place before.
func TestCallersWhoseSessionIsReplacedAreNotRefusedAtMaxWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, poolstate.Config{}, poolstate.Limits{MaxProcesses: 1, MaxWaiting: 1})
		first := w.up(0, "a")
		n := rapid.IntRange(1, 5).Draw(t, "in line")
		for range n {
			_, err := w.join(0, "a")
			require.NoError(t, err)
		}
		_, err := w.join(0, "b") // and now MaxWaiting is reached
		require.NoError(t, err)
		w.leave(first, "timeout")
		require.Empty(t, w.refused)
		require.Len(t, w.borrows, n+1)
		_, err = w.join(0, "c")
		require.ErrorAs(t, err, new(*poolstate.BusyError))
		w.drain()
	})
}

package idle_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/idle"
)

func entry(l *idle.Lists[string], name string, timeout, used time.Duration) *idle.Entry[string] {
	e := &idle.Entry[string]{Value: name, Used: used}
	l.Join(e, timeout)
	l.File(e)
	return e
}

func TestEachEntryExpiresAtItsOwnTime(t *testing.T) {
	var l idle.Lists[string]
	entry(&l, "minute", 60, 0)
	entry(&l, "second", 1, 10)
	entry(&l, "never", -1, 0)
	_, next := l.Expired(10)
	require.EqualValues(t, 11, next)
	e, _ := l.Expired(11)
	require.Equal(t, "second", e.Value)
	l.Remove(e)
	_, next = l.Expired(59)
	require.EqualValues(t, 60, next)
	e, _ = l.Expired(60)
	l.Leave(e)
	e, next = l.Expired(1 << 60)
	require.Nil(t, e)
	require.Zero(t, next)
}

func TestOldestIsFoundOverAllTimeouts(t *testing.T) {
	var l idle.Lists[string]
	entry(&l, "b", 1, 2)
	first := entry(&l, "a", 2, 1)
	entry(&l, "c", 2, 3)
	e, ok := l.Oldest(nil)
	require.True(t, ok)
	require.Equal(t, "a", e.Value)
	e, _ = l.Oldest(first)
	require.Equal(t, "b", e.Value)
	e, _ = l.UnusedSince(1)
	require.Equal(t, "a", e.Value)
	_, ok = l.UnusedSince(0)
	require.False(t, ok)
}

func TestEntryThatWasNotUsedGoesBackToItsPlace(t *testing.T) {
	var l idle.Lists[string]
	var all []*idle.Entry[string]
	for i, name := range []string{"a", "b", "c"} {
		all = append(all, entry(&l, name, 9, time.Duration(i)))
	}
	for _, i := range []int{1, 0, 2} {
		l.Remove(all[i])
		l.File(all[i])
		require.Equal(t, []string{"a", "b", "c"}, slices.Collect(l.All))
	}
	require.Panics(t, func() { l.File(all[0]) })
}

func TestNothingIsRememberedOfTimeoutsThatNobodyHas(t *testing.T) {
	var l idle.Lists[string]
	a, b := entry(&l, "a", 5, 0), entry(&l, "b", 5, 0)
	l.Leave(a)
	require.Equal(t, 1, l.Classes())
	l.Leave(b)
	require.Zero(t, l.Classes())
	require.Zero(t, l.Len())
}

func TestRandomUseKeepsTheOrderOfUse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l idle.Lists[int]
	entries := make([]*idle.Entry[int], 20)
	for i := range entries {
		entries[i] = &idle.Entry[int]{Value: i}
		l.Join(entries[i], time.Duration(i%3))
	}
	filed := 0
	for now := range time.Duration(2000) {
		e := entries[r.IntN(len(entries))]
		if e.Filed() {
			l.Remove(e)
			l.Remove(e)
			filed--
		} else {
			if r.IntN(3) > 0 {
				e.Used = now
			}
			l.File(e)
			filed++
		}
		require.Equal(t, filed, l.Len())
		oldest, ok := l.Oldest(nil)
		require.Equal(t, filed > 0, ok)
		for _, e := range entries {
			if e.Filed() {
				require.LessOrEqual(t, oldest.Used, e.Used)
			}
		}
	}
}

package list_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/list"
)

// both returns the values of l, front to back, which must be what they are back to
// front.
func both(t require.TestingT, l *list.List[int]) []int {
	var there, back []int
	for n := l.Front(); n != nil; n = n.Next() {
		there = append(there, n.Value)
	}
	for n := l.Back(); n != nil; n = n.Prev() {
		back = append(back, n.Value)
	}
	slices.Reverse(back)
	require.Equal(t, there, back)
	require.Len(t, there, l.Len())
	return there
}

func TestRandomUseAgreesWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l list.List[int]
		nodes := make([]list.Node[int], 8)
		for i := range nodes {
			nodes[i].Value = i
		}
		var want []int
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				n := &nodes[rapid.IntRange(0, 7).Draw(t, "node")]
				if n.In() {
					t.Skip("is in it")
				}
				i := rapid.IntRange(0, len(want)).Draw(t, "position")
				var at *list.Node[int]
				if i > 0 {
					at = &nodes[want[i-1]]
				}
				l.InsertAfter(n, at)
				want = slices.Insert(want, i, n.Value)
			},
			"push": func(t *rapid.T) {
				n := &nodes[rapid.IntRange(0, 7).Draw(t, "node")]
				if n.In() {
					t.Skip("is in it")
				}
				l.PushBack(n)
				want = append(want, n.Value)
			},
			"remove": func(t *rapid.T) {
				n := &nodes[rapid.IntRange(0, 7).Draw(t, "node")]
				i := slices.Index(want, n.Value)
				require.Equal(t, i >= 0, l.Remove(n))
				if i >= 0 {
					want = slices.Delete(want, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				require.ElementsMatch(t, want, both(t, &l))
				require.True(t, slices.Equal(want, both(t, &l)))
				for i := range nodes {
					require.Equal(t, slices.Contains(want, i), nodes[i].In())
				}
			},
		})
	})
}

func TestNodeIsInOneListAtMost(t *testing.T) {
	var a, b list.List[int]
	var n, other list.Node[int]
	a.PushBack(&n)
	require.Panics(t, func() { a.PushBack(&n) })
	require.Panics(t, func() { b.PushBack(&n) })
	require.Panics(t, func() { b.Remove(&n) })
	require.Panics(t, func() { b.InsertAfter(&other, &n) })
	require.True(t, a.Remove(&n))
	b.PushBack(&n)
	require.Equal(t, &n, b.Front())
}

func TestJoiningAndLeavingAllocateNothing(t *testing.T) {
	var l list.List[int]
	var n list.Node[int]
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l.PushBack(&n)
		l.Remove(&n)
	}))
}

package fairqueue_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/fairqueue"
)

func any(string) bool { return true }

func drain(q *fairqueue.Queue[string]) (order []string) {
	for v, ok := q.Pop(any); ok; v, ok = q.Pop(any) {
		order = append(order, v)
	}
	return order
}

func TestOneGroupIsServedInOrderOfArrival(t *testing.T) {
	var q fairqueue.Queue[string]
	for _, v := range []string{"1", "2", "3"} {
		q.Push("g", v)
	}
	require.Equal(t, []string{"1", "2", "3"}, drain(&q))
	require.Zero(t, q.Len())
}

func TestGroupsTakeTurns(t *testing.T) {
	var q fairqueue.Queue[string]
	for _, v := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "b2"} {
		q.Push(v[:1], v)
	}
	require.Equal(t, []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4"}, drain(&q))
}

func TestWaiterThatMayNotGoIsPassedOver(t *testing.T) {
	var q fairqueue.Queue[string]
	for _, v := range []string{"a1", "a2", "b1"} {
		q.Push(v[:1], v)
	}
	v, ok := q.Pop(func(v string) bool { return v != "a1" })
	require.True(t, ok)
	require.Equal(t, "a2", v)
	_, ok = q.Pop(func(string) bool { return false })
	require.False(t, ok)
	require.Equal(t, []string{"b1", "a1"}, drain(&q))
}

func TestWaiterThatLeavesGivesUpItsPlaceOnce(t *testing.T) {
	var q fairqueue.Queue[string]
	a := q.Push("a", "a1")
	q.Push("b", "b1")
	require.True(t, q.Remove(a))
	require.False(t, q.Remove(a))
	require.Equal(t, 1, q.Len())
	require.Equal(t, []string{"b1"}, drain(&q))
	q.Push("a", "a2")
	require.Equal(t, []string{"a2"}, drain(&q))
}

func TestRandomUseAgreesWithAPlainModel(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q fairqueue.Queue[string]
		groups := map[string][]*fairqueue.Item[string]{}
		var ring []string // the groups in the order of their turns
		for range 500 {
			name := string(rune('a' + r.IntN(5)))
			switch r.IntN(3) {
			case 0:
				if len(groups[name]) == 0 {
					ring = append(ring, name)
				}
				groups[name] = append(groups[name], q.Push(name, name))
			case 1:
				if items := groups[name]; len(items) > 0 {
					i := r.IntN(len(items))
					require.True(t, q.Remove(items[i]))
					groups[name] = slices.Delete(items, i, i+1)
				}
			case 2:
				v, ok := q.Pop(any)
				require.Equal(t, len(ring) > 0, ok)
				if ok {
					require.Equal(t, ring[0], v)
					groups[v] = groups[v][1:]
					ring = append(ring[1:], v)
				}
			}
			ring = slices.DeleteFunc(ring, func(g string) bool { return len(groups[g]) == 0 })
			n := 0
			for _, items := range groups {
				n += len(items)
			}
			require.Equal(t, n, q.Len())
			require.Len(t, slices.Collect(q.All), n)
		}
	}
}

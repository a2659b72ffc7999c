// Package fairqueue is a queue of waiters that is first come, first served
// within a group and takes turns between groups, so that a group with a hundred
// waiters doesn't keep the only one of another waiting for them all.
//
// A Queue is not safe for concurrent use; its owner's lock protects it.
package fairqueue

import "github.com/mcppool/mcppool/internal/list"

// Queue holds the waiters. The zero value is empty.
type Queue[T any] struct {
	byName map[string]*group[T]
	groups list.List[*group[T]] // the one whose turn it is first
	len    int
}

type group[T any] struct {
	name    string
	waiters list.List[*Item[T]]
	node    list.Node[*group[T]] // in Queue.groups
}

// Item is one waiter's place.
type Item[T any] struct {
	Value T
	group *group[T]
	node  list.Node[*Item[T]] // in group.waiters until it leaves
}

// Len is how many wait.
func (q *Queue[T]) Len() int { return q.len }

// Push appends a waiter to its group. A group that is new gets the last turn.
func (q *Queue[T]) Push(name string, v T) *Item[T] {
	g := q.byName[name]
	if g == nil {
		g = &group[T]{name: name}
		g.node.Value = g
		if q.byName == nil {
			q.byName = make(map[string]*group[T])
		}
		q.byName[name] = g
		q.groups.PushBack(&g.node)
	}
	it := &Item[T]{Value: v, group: g}
	it.node.Value = it
	g.waiters.PushBack(&it.node)
	q.len++
	return it
}

// Remove takes a waiter out, wherever it stands; it reports whether it was
// still there.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	g := it.group
	if !g.waiters.Remove(&it.node) {
		return false
	}
	q.len--
	if g.waiters.Len() == 0 {
		delete(q.byName, g.name)
		q.groups.Remove(&g.node)
	}
	return true
}

// Pop takes out the first waiter that ok agrees to, beginning with the group
// whose turn it is, and gives the next group the turn.
func (q *Queue[T]) Pop(ok func(T) bool) (v T, found bool) {
	for it := range q.items {
		if ok(it.Value) {
			q.passTurn(it.group)
			q.Remove(it)
			return it.Value, true
		}
	}
	return v, false
}

// passTurn gives the turn to the group behind g: those up to it, g among them, have
// the last turns.
func (q *Queue[T]) passTurn(g *group[T]) {
	for passed := false; !passed; {
		front := q.groups.Front()
		passed = front.Value == g
		q.groups.Remove(front)
		q.groups.PushBack(front)
	}
}

// All returns every waiter, by groups.
func (q *Queue[T]) All(yield func(T) bool) {
	for it := range q.items {
		if !yield(it.Value) {
			return
		}
	}
}

func (q *Queue[T]) items(yield func(*Item[T]) bool) {
	for g := q.groups.Front(); g != nil; g = g.Next() {
		for it := g.Value.waiters.Front(); it != nil; it = it.Next() {
			if !yield(it.Value) {
				return
			}
		}
	}
}

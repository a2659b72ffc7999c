// Package fairqueue is a queue of waiters that is first come, first served
// within a group and takes turns between groups, so that a group with a hundred
// waiters doesn't keep the only one of another waiting for them all.
//
// A Queue is not safe for concurrent use; its owner's lock protects it.
package fairqueue

// Queue holds the waiters. The zero value is empty.
type Queue[T any] struct {
	groups map[string]*group[T]
	// turn is the group that is asked next; the groups are a ring.
	turn *group[T]
	len  int
}

type group[T any] struct {
	name        string
	first, last *Item[T]
	prev, next  *group[T]
}

// Item is one waiter's place.
type Item[T any] struct {
	Value      T
	group      *group[T] // nil once it has left
	prev, next *Item[T]
}

// Len is how many wait.
func (q *Queue[T]) Len() int { return q.len }

// Push appends a waiter to its group. A group that is new gets the last turn.
func (q *Queue[T]) Push(name string, v T) *Item[T] {
	g := q.groups[name]
	if g == nil {
		g = &group[T]{name: name}
		if q.groups == nil {
			q.groups = make(map[string]*group[T])
		}
		q.groups[name] = g
		if q.turn == nil {
			g.prev, g.next = g, g
			q.turn = g
		} else {
			g.prev, g.next = q.turn.prev, q.turn
			g.prev.next, g.next.prev = g, g
		}
	}
	it := &Item[T]{Value: v, group: g, prev: g.last}
	if g.last == nil {
		g.first = it
	} else {
		g.last.next = it
	}
	g.last = it
	q.len++
	return it
}

// Remove takes a waiter out, wherever it stands; it reports whether it was
// still there.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	g := it.group
	if g == nil {
		return false
	}
	if it.prev == nil {
		g.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		g.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.group, it.prev, it.next = nil, nil, nil
	q.len--
	if g.first == nil {
		delete(q.groups, g.name)
		if g.next == g {
			q.turn = nil
		} else {
			g.prev.next, g.next.prev = g.next, g.prev
			if q.turn == g {
				q.turn = g.next
			}
		}
	}
	return true
}

// Pop takes out the first waiter that ok agrees to, beginning with the group
// whose turn it is, and gives the next group the turn.
func (q *Queue[T]) Pop(ok func(T) bool) (v T, found bool) {
	if q.turn == nil {
		return v, false
	}
	for g := q.turn; ; {
		for it := g.first; it != nil; it = it.next {
			if ok(it.Value) {
				q.turn = g.next
				v = it.Value
				q.Remove(it)
				return v, true
			}
		}
		if g = g.next; g == q.turn {
			return v, false
		}
	}
}

// All gives every waiter, by groups.
func (q *Queue[T]) All(yield func(T) bool) {
	if q.turn == nil {
		return
	}
	for g := q.turn; ; {
		for it := g.first; it != nil; it = it.next {
			if !yield(it.Value) {
				return
			}
		}
		if g = g.next; g == q.turn {
			return
		}
	}
}

// Package list is a doubly linked list whose links lie in the elements: whoever is in
// a list embeds a [Node] for it, so that to join and to leave allocates nothing, and to
// leave takes no search.
//
// A List is not safe for concurrent use; its owner's lock protects it.
package list

// List is a list. The zero value is empty.
type List[T any] struct {
	front, back *Node[T]
	len         int
}

// Node is the place of one element in a list, or in none. The zero value is in none.
// It must not be copied while it is in one.
type Node[T any] struct {
	Value T

	list       *List[T] // nil for none
	prev, next *Node[T]
}

// In reports whether n is in a list.
func (n *Node[T]) In() bool { return n.list != nil }

// Next returns the node behind n, or nil.
func (n *Node[T]) Next() *Node[T] { return n.next }

// Prev returns the node before n, or nil.
func (n *Node[T]) Prev() *Node[T] { return n.prev }

// Len returns how many nodes are in l.
func (l *List[T]) Len() int { return l.len }

// Front returns the first node, or nil.
func (l *List[T]) Front() *Node[T] { return l.front }

// Back returns the last node, or nil.
func (l *List[T]) Back() *Node[T] { return l.back }

// PushBack makes n the last node.
func (l *List[T]) PushBack(n *Node[T]) { l.InsertAfter(n, l.back) }

// InsertAfter puts n behind at, which is in l; if at is nil, n becomes the first node.
func (l *List[T]) InsertAfter(n, at *Node[T]) {
	if n.list != nil {
		panic("bug: a node joins a list and is in one")
	}
	if at != nil && at.list != l {
		panic("bug: a node joins behind one of another list")
	}
	n.list, n.prev = l, at
	if at == nil {
		n.next, l.front = l.front, n
	} else {
		n.next, at.next = at.next, n
	}
	if n.next == nil {
		l.back = n
	} else {
		n.next.prev = n
	}
	l.len++
}

// Remove takes n out; it reports false if n was in no list.
func (l *List[T]) Remove(n *Node[T]) bool {
	if n.list == nil {
		return false
	}
	if n.list != l {
		panic("bug: a node is taken out of another list than its own")
	}
	if n.prev == nil {
		l.front = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.back = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.list, n.prev, n.next = nil, nil, nil
	l.len--
	return true
}

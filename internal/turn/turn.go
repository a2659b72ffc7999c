// Package turn keeps who may use a thing: one at a time, in order of arrival.
package turn

import "github.com/mcppool/mcppool/internal/list"

// Line is the turn to use something, and the line of those who wait for it. Its
// zero value is ready. Its owner's lock protects it, so that whoever comes later
// under that lock is behind.
type Line struct {
	// Overlap means that there are no turns: all may go at once. It must not change
	// while somebody is in the line.
	Overlap bool

	taken bool
	moved bool // MoveOn was called
	line  list.List[*Place]
}

// Place is a place in a line. Nil is the turn itself.
type Place struct {
	node   list.Node[*Place]
	called chan struct{}
	moved  bool
}

// Called is closed when the wait is over: the turn is the waiter's, or Moved says
// that it never will be.
func (w *Place) Called() <-chan struct{} { return w.called }

// Moved reports, once Called is closed, that the waiter was sent on.
func (w *Place) Moved() bool { return w.moved }

// Waits reports that w is still in the line. The owner's lock protects it.
func (w *Place) Waits() bool { return w != nil && w.node.In() }

// Take gives the turn, which is nil, or a place in the line.
func (l *Line) Take() *Place {
	switch {
	case l.Overlap:
		return nil
	case !l.taken:
		l.taken = true
		return nil
	}
	w := &Place{called: make(chan struct{})}
	w.node.Value = w
	l.line.PushBack(&w.node)
	return w
}

// Leave gives up the turn, which the first in line gets, or a place. It must be
// called once for each Take.
func (l *Line) Leave(w *Place) {
	switch {
	case l.Overlap:
	case w.Waits():
		l.line.Remove(&w.node)
	case l.moved:
		// The turn leads nowhere any more. Those who are sent on go one by one, each
		// when the one before has left, so that they arrive elsewhere in order.
		if w != nil && w.moved {
			l.callFirst()
		}
	case !l.taken:
		panic("bug: a turn is left that nobody has")
	default:
		l.taken = l.callFirst()
	}
}

// MoveOn sends all who are in the line on, to wherever they go instead. Nobody may
// Take after it.
func (l *Line) MoveOn() {
	if !l.moved {
		l.moved = true
		l.callFirst()
	}
}

// callFirst ends the wait of the first in line; it reports whether there is one.
func (l *Line) callFirst() bool {
	front := l.line.Front()
	if front == nil {
		return false
	}
	w := front.Value
	l.line.Remove(front)
	w.moved = l.moved
	close(w.called)
	return true
}

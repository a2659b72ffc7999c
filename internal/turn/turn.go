// Package turn keeps who may use a thing: one at a time, in order of arrival.
package turn

import "github.com/mcppool/mcppool/internal/list"

// Line is the turn to use something, and the line of those who wait for it. Its
// zero value is on hold: whoever comes waits until it is opened. Its owner's lock
// protects it.
type Line[T any] struct {
	// Of is what the turn is for.
	Of T
	// Overlap means that there are no turns: all may go at once while the line is
	// open. It must not change while somebody is in the line.
	Overlap bool

	open   bool
	taken  bool
	called *Place[T] // who has the turn and hasn't accepted it yet
	line   list.List[*Place[T]]
}

// Place is a place in a line. Nil is the turn itself.
type Place[T any] struct {
	// Caller is the owner's.
	Caller any

	node   list.Node[*Place[T]]
	line   *Line[T]
	number uint64
	done   chan struct{} // Called
	sent   bool          // it was called for another line, or for none; written before done is closed
	next   *Place[T]     // in another line
	err    error         // why there is none
}

// Called is closed when the wait in this line is over: the turn is the waiter's, or
// Sent reports that it never will be.
func (p *Place[T]) Called() <-chan struct{} { return p.done }

// Sent reports, once Called is closed, that the waiter was sent to another line, or
// away. It may be called without the owner's lock.
func (p *Place[T]) Sent() bool { return p.sent }

// The methods below are under the owner's lock.

// Waits reports that p is still in its line.
func (p *Place[T]) Waits() bool { return p != nil && p.node.In() }

// Last follows p to where it was moved.
func (p *Place[T]) Last() *Place[T] {
	for p.next != nil {
		p = p.next
	}
	return p
}

// Of is what p is the turn for.
func (p *Place[T]) Of() T { return p.line.Of }

// Err is why the waiter was sent away; nil if it wasn't.
func (p *Place[T]) Err() error { return p.err }

// Take returns the turn, which is nil, or a place in the line: behind those with a
// lower number, who came before.
func (l *Line[T]) Take(number uint64) *Place[T] {
	switch {
	case l.open && l.Overlap:
		return nil
	case l.open && !l.taken:
		l.taken = true
		return nil
	}
	p := &Place[T]{line: l, number: number, done: make(chan struct{})}
	l.insert(p)
	return p
}

func (l *Line[T]) insert(p *Place[T]) {
	before := l.line.Back()
	for before != nil && before.Value.number > p.number {
		before = before.Prev()
	}
	p.node.Value = p
	l.line.InsertAfter(&p.node, before)
}

// Leave gives up the turn, which the first in line gets, or a place. It is called once
// for each Take, unless the place was moved or refused.
func (l *Line[T]) Leave(p *Place[T]) {
	switch {
	case p.Waits():
		l.line.Remove(&p.node)
	case l.Overlap:
	case !l.taken:
		panic("bug: a turn is left that nobody has")
	default:
		l.taken, l.called = false, nil
		l.next()
	}
}

// Accept notes that the waiter knows that it has the turn.
func (l *Line[T]) Accept(p *Place[T]) {
	if l.called == p {
		l.called = nil
	}
}

// Pending reports that somebody was given the turn and hasn't accepted it.
func (l *Line[T]) Pending() bool { return l.called != nil }

// Len is how many wait in the line.
func (l *Line[T]) Len() int { return l.line.Len() }

// First is the first in the line; nil when nobody waits.
func (l *Line[T]) First() *Place[T] {
	if front := l.line.Front(); front != nil {
		return front.Value
	}
	return nil
}

// Hold keeps the turn from all who don't have it, until the line is opened again.
func (l *Line[T]) Hold() { l.open = false }

// Open gives the turn to the first in line if it is free, or to all where they overlap.
func (l *Line[T]) Open() {
	l.open = true
	l.next()
}

// Held reports that the line isn't open.
func (l *Line[T]) Held() bool { return !l.open }

// Stuck reports that somebody waits for a turn that nobody has.
func (l *Line[T]) Stuck() bool { return l.open && !l.taken && l.line.Len() > 0 }

// next calls those whose turn it is.
func (l *Line[T]) next() {
	for l.open && !l.taken {
		p := l.First()
		if p == nil {
			return
		}
		l.line.Remove(&p.node)
		if !l.Overlap {
			l.taken, l.called = true, p
		}
		close(p.done)
	}
}

// PutBack takes the turn from p, which hasn't accepted it, and puts it back into the
// line.
func (l *Line[T]) PutBack(p *Place[T]) {
	if l.called != p {
		panic("bug: a turn is taken from who doesn't have it")
	}
	l.taken, l.called = false, nil
	l.insert(p)
}

// Move sends all who are in the line to another one, where each stands where its
// number puts it.
func (l *Line[T]) Move(to *Line[T]) {
	for p := l.First(); p != nil; p = l.First() {
		p.next = &Place[T]{Caller: p.Caller, line: to, number: p.number, done: make(chan struct{})}
		to.insert(p.next)
		l.send(p)
	}
	to.next()
}

// Refuse sends all who are in the line away.
func (l *Line[T]) Refuse(err error) {
	for p := l.First(); p != nil; p = l.First() {
		p.err = err
		l.send(p)
	}
}

// send ends the wait of p in the line; one that was put back knows of its call already.
func (l *Line[T]) send(p *Place[T]) {
	l.line.Remove(&p.node)
	select {
	case <-p.done:
	default:
		p.sent = true
		close(p.done)
	}
}

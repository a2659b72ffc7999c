package mcppool

import (
	"container/list"
	"context"
)

// turns is who may call in a session: one borrower has the turn, and the others
// stand in line in the order in which they came, also while the session is being
// connected. It is taken and given up under Pool.mu, so that whoever comes later
// is behind. A session whose calls may overlap has none.
type turns struct {
	overlap bool // no turns: calls may overlap
	taken   bool
	line    list.List // of *turn
}

// turn is a place in the line. Nil is the turn itself.
type turn struct {
	place *list.Element
	// called is closed when the wait is over: the turn is the waiter's, or, when
	// moved is set, the session was replaced.
	called chan struct{}
	moved  bool
	gone   bool // it isn't in the line any more
}

// take gives the turn, or a place in line. The caller must hold Pool.mu, as for
// all methods.
func (t *turns) take() *turn {
	switch {
	case t.overlap:
		return nil
	case !t.taken:
		t.taken = true
		return nil
	}
	w := &turn{called: make(chan struct{})}
	w.place = t.line.PushBack(w)
	return w
}

// leave gives up the turn or the place in line.
func (t *turns) leave(w *turn) {
	switch {
	case t.overlap || w != nil && w.moved:
	case w != nil && !w.gone:
		t.remove(w)
	default:
		if front := t.line.Front(); front != nil {
			t.call(front, false)
		} else {
			t.taken = false
		}
	}
}

// moveOn sends the first in line to the session's successor. That one sends the
// next when it leaves, so that they arrive there in order.
func (t *turns) moveOn() {
	if front := t.line.Front(); front != nil {
		t.call(front, true)
	}
}

func (t *turns) call(place *list.Element, moved bool) {
	w := place.Value.(*turn)
	t.remove(w)
	w.moved = moved
	close(w.called)
}

func (t *turns) remove(w *turn) {
	w.gone = true
	t.line.Remove(w.place)
}

// awaitTurn waits for the turn. A close wins when it ties; a turn that ties with
// the end of ctx is passed on by leave.
func (s *session) awaitTurn(ctx context.Context, w *turn) (err error) {
	select {
	case <-w.called:
	default:
		end := s.wait(ctx, WaitTurn)
		defer func() { end(err) }()
		select {
		case <-w.called:
		case <-s.killed:
			return s.cause
		case <-s.lost:
			return errDead // whoever has the turn will be told by the client
		case <-s.pool.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.moved {
		return errStale
	}
	return nil
}

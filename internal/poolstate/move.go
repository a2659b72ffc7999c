package poolstate

import "github.com/mcppool/mcppool/internal/turn"

// Place is the place of a borrower in the line for a session. While the session isn't
// live, or it is in doubt whether it answers, all who borrow it have one.
//
// When a session is replaced, those in its line move to the line of its successor, at
// the end of the same event and in their order, so that nobody who comes later gets
// between. One who was called, but doesn't know it yet, moves with them: the others
// wait until he has looked, which [State.Proceed] is for.
type Place = turn.Place[*Session]

// Proceed returns what has become of a borrower whose place was called: it has its
// turn in the session, for which the place is nil; or it is in the line for another
// session; or the error says why there is none for it, and it has left.
func (st *State) Proceed(p *Place, now Moment) (*Session, *Place, error) {
	for {
		p = p.Last()
		s := p.Of()
		switch {
		case p.Err() != nil:
			return nil, nil, p.Err()
		case p.Waits():
			return s, p, nil
		case !s.stale.Load():
			s.turns.Accept(p)
			return s, nil, nil
		case isClosed(s.killed) || s.Lost() || s.turns.Overlap:
			return s, nil, nil // it sees that for itself, and leaves: the others wait for that
		}
		s.turns.PutBack(p)
		st.moveOn(s, now)
		st.stir(now) // nobody is left in that line
	}
}

// orphan has those who stand in line for s, which was unlinked, moved on.
func (st *State) orphan(s *Session, now Moment) {
	s.turns.Hold()
	if (s.turns.Len() > 0 || s.turns.Pending()) && s.cause == nil && s.status < Closing {
		st.orphans = append(st.orphans, s)
		st.stir(now)
	}
}

// orphanOf returns the session that w would have shared and whose line can't move yet.
func (st *State) orphanOf(w *Want) *Session {
	for _, s := range st.orphans { // for as long as it takes a caller to look that was called
		if s.Key == w.key() && !s.oneShot && s.cause == nil && s.status < Closing && !s.turns.Overlap {
			return s
		}
	}
	return nil
}

// moveLines moves on those who stand in line for what was unlinked.
func (st *State) moveLines(now Moment) {
	orphans := st.orphans
	st.orphans = nil
	for _, s := range orphans {
		switch {
		case s.cause != nil: // they fail with it
		case s.turns.Pending():
			st.orphans = append(st.orphans, s)
		default:
			st.moveOn(s, now)
		}
	}
}

// moveOn moves those who stand in line for s to its successor.
func (st *State) moveOn(s *Session, now Moment) {
	n := s.turns.Len()
	if n == 0 {
		return
	}
	if s.status == Queued {
		st.waiting -= n
	}
	s.inFlight -= n
	next, err := st.successor(s, now)
	if err != nil {
		s.turns.Refuse(err)
	} else {
		if next.Owner == nil {
			next.Caller = s.turns.First().Caller
			st.act(Own, next)
		}
		st.borrow(next, n)
		s.turns.Move(&next.turns)
	}
	st.settle(s, now)
}

func (st *State) successor(s *Session, now Moment) (*Session, error) {
	if st.closed {
		return nil, ErrClosed
	}
	return st.find(&Want{Key: s.Key, Policy: s.policy, Label: s.Group.Label}, now)
}

// borrow counts n more borrowers of s.
func (st *State) borrow(s *Session, n int) {
	s.inFlight += n
	st.unfile(s)
	if s.status == Queued {
		st.waiting += n
	}
}

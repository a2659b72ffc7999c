package poolstate

import "slices"

// How closing meets connecting. A session is known to its server's group from the
// moment it is begun, so that a close finds and marks every connect under way; the
// connect's end is an event under the same lock, and sees the mark. Nothing has to be
// remembered of a server that has no session.

// Unlink takes s out of where calls find it. Those in line for it go on to its
// successor, and it is closed once nobody borrows it. The first reason counts.
func (st *State) Unlink(s *Session, why Reason, now Moment) {
	if s.reason == "" {
		s.reason = why
		if why == Evicted || why == LRU {
			st.counts.Evicted++
		}
		if why == Crashed && s.status == Live {
			st.died(s, now)
		}
	}
	switch {
	case s.linked && s.shared:
		i := slices.Index(s.Group.shared, s)
		s.Group.shared = slices.Delete(s.Group.shared, i, i+1)
		st.unlinked(s)
	case s.linked:
		if st.sessions[s.Key] != s {
			panic("bug: a linked session isn't the one of its key")
		}
		delete(st.sessions, s.Key)
		st.unlinked(s)
	case s.spare:
		st.takeOut(s)
		s.stale.Store(true)
	}
	st.orphan(s, now)
	st.settle(s, now)
}

// unlinked ends the keeping of s, which was linked.
func (st *State) unlinked(s *Session) {
	s.linked = false
	st.counts.Kept--
	st.ends.note(s.Key, s.reason)
	s.stale.Store(true)
	st.unfile(s)
	st.idle.Leave(&s.idle)
}

// Kill closes s under its borrowers, whose calls fail with cause. It does nothing to
// one that is closing already.
func (st *State) Kill(s *Session, cause error, why Reason, now Moment) {
	if s.status >= Closing {
		return // whoever closes it said why
	}
	if s.cause == nil {
		s.cause = cause
		close(s.killed)
	}
	st.Unlink(s, why, now)
	st.settle(s, now)
}

// KillAll kills all sessions of a server.
func (st *State) KillAll(g *Group, cause error, why Reason, now Moment) {
	for s := range g.members {
		st.Kill(s, cause, why, now)
	}
}

// KillScope kills all sessions of a scope.
func (st *State) KillScope(name string, cause error, why Reason, now Moment) {
	if sc := st.scopes[name]; sc != nil {
		for s := range sc.members {
			st.Kill(s, cause, why, now)
		}
	}
}

// Retire lets s end when its calls have. A spare has none: who waits for its connect
// learns the cause at once.
func (st *State) Retire(s *Session, cause error, why Reason, now Moment) {
	if s.spare {
		st.Kill(s, cause, why, now)
		return
	}
	s.parting = cause
	st.Unlink(s, why, now)
}

// batch is how many sessions one event ends at most that ends what is idle: the lock
// is others' in between.
const batch = 256

// UnlinkIdle ends sessions that were last used at limit or before, and reports whether
// there are more of them.
func (st *State) UnlinkIdle(limit, now Moment) (more bool) {
	for range batch {
		e, ok := st.idle.UnusedSince(limit)
		if !ok {
			return false
		}
		st.Unlink(e.Value, Idle, now)
	}
	_, more = st.idle.UnusedSince(limit)
	return more
}

// Refuse ends the taking of calls: every Join fails.
func (st *State) Refuse() { st.closed = true }

// settle moves an unlinked session on: nobody borrows it any more, or it was killed,
// so that it is closed.
func (st *State) settle(s *Session, now Moment) {
	if s.linked || s.spare || (s.inFlight > 0 && s.cause == nil) {
		return
	}
	switch s.status {
	case Queued: // nothing of it is there yet
		st.waiting -= s.inFlight
		s.refusal = s.cause
		st.dequeue(s)
		st.move(s, Closing)
		st.Closed(s, now)
	case Connecting:
		if s.ahead && s.cause == nil && s.parting != nil {
			s.cause = s.parting // for who waits for its connect without borrowing it, see Prewarm
			close(s.killed)
		}
		st.move(s, Closing)
		st.act(Abort, s)
	case Live:
		st.move(s, Closing)
		st.act(Close, s)
	}
}

// move is the only writer of a session's status, and keeps the counts that follow
// from it.
func (st *State) move(s *Session, to Status) {
	if to <= s.status || to == Closed && (s.status != Closing || s.linked || s.spare) {
		panic("bug: a session goes from " + s.status.String() + " to " + to.String())
	}
	from := s.status
	s.status = to
	st.counts.of[from]--
	if to != Closed {
		st.counts.of[to]++
	}
	if !s.process {
		return
	}
	for _, t := range st.tallies(s) {
		if t == nil {
			continue
		}
		switch {
		case to == Connecting:
			t.processes++
		case to == Closing && s.ran:
			t.ending++
		case to == Closed && s.ran:
			t.processes--
			t.ending--
		}
	}
	s.ran = s.ran || to == Connecting
}

func (st *State) forgetIn(sc *scope, s *Session) {
	delete(sc.members, s)
	if len(sc.members) == 0 {
		delete(st.scopes, s.Key.Scope)
	}
}

// Closed forgets s, which was closing and nothing of which is left.
func (st *State) Closed(s *Session, now Moment) {
	st.move(s, Closed)
	delete(s.Group.members, s)
	s.setVisited(false)
	if len(s.Group.members) == 0 {
		delete(st.groups, s.Group.Digest)
	}
	if s.scope != nil {
		st.forgetIn(s.scope, s)
	}
	if s.shared {
		s.Group.sharing--
	}
	if s.policy.Exclusive {
		s.Group.exclusive--
	}
	st.counts.Open--
	st.closes[s.reason]++
	st.placeFree(now)
}

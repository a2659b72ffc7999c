package poolstate

import "time"

// Room is made for sessions in the queue by ending others. One is ended only for a
// session that may start once those are gone that are ending then, so that none is
// ended in vain: who waits at several limits gets room at all of them or at none, and
// who waits for a place that goes to another before him gets none.

// makeRoom ends spares and idle sessions for those in the queue, in their order.
func (st *State) makeRoom(now Moment) {
	st.round++
	st.futile = false
	served := 0
	for q := range st.queue.All { // which an end doesn't change: it is an event of its own
		if st.idle.Len()+st.spares.Len()+st.warming.Len() == 0 {
			return
		}
		if limit := st.limits.MaxStarting; limit > 0 && served >= limit {
			return // who starts after those will find room when it is his turn
		}
		if st.roomFor(q, now) {
			served++
		}
	}
	st.futile = true // what is left idle serves none of them
}

// needed reports whether s, which has become idle, may let another start. It takes no
// walk: where others are idle already that could make room at the limit for all, and
// didn't, those who wait do so at another limit.
func (st *State) needed(s *Session) bool {
	if !s.process || st.queue.Len() == 0 {
		return false
	}
	return !st.futile && st.limits.MaxProcesses > 0 || st.neededNearby(s)
}

// neededNearby reports whether others wait for a place of the server or the scope of s.
func (st *State) neededNearby(s *Session) bool {
	return st.perServer(s.Group) > 0 && s.Group.tally.queued > 0 ||
		st.limits.MaxPerScope > 0 && s.scope != nil && s.scope.tally.queued > 0
}

// roomFor sees to it that q may start once what is ending is gone, and keeps a place
// for it from those behind it. It reports false, and ends nothing, where that can't be.
func (st *State) roomFor(q *Session, now Moment) bool {
	st.shed(q, now)
	lacks := st.lacking(q)
	var server, scope, other *Session
	if lacks.server {
		if server = q.Group.oldest(); server == nil {
			return false
		}
	}
	if lacks.scope {
		if scope = q.scope.oldest(); scope == nil {
			return false
		}
	}
	if lacks.pool && server == nil && scope == nil {
		if other = st.oldest(); other == nil {
			return false
		}
	}
	st.evict(server, LimitServer, now)
	st.evict(scope, LimitScope, now)
	st.evict(other, LimitProcesses, now)
	st.promise(q)
	return true
}

// shed ends what is idle beyond a limit that was lowered, where q waits for it.
func (st *State) shed(q *Session, now Moment) {
	over := func(t *tally, limit int) bool { return limit > 0 && t.processes-t.ending > limit }
	for over(&q.Group.tally, st.perServer(q.Group)) {
		s := q.Group.oldest()
		if s == nil {
			break
		}
		st.evict(s, LimitServer, now)
	}
	for q.scope != nil && over(&q.scope.tally, st.limits.MaxPerScope) {
		s := q.scope.oldest()
		if s == nil {
			break
		}
		st.evict(s, LimitScope, now)
	}
	for over(&st.tally, st.limits.MaxProcesses) {
		s := st.oldest()
		if s == nil {
			break
		}
		st.evict(s, LimitProcesses, now)
	}
}

// lack is where a session that waits has no place, even once all that is ending is gone.
type lack struct{ server, scope, pool bool }

func (st *State) lacking(q *Session) (l lack) {
	lacks := func(t *tally, limit int) bool {
		return limit > 0 && t.processes-t.ending+t.promisedIn(st.round) >= limit
	}
	l.scope = q.scope != nil && lacks(&q.scope.tally, st.limits.MaxPerScope)
	if st.spareFor(q.Group, nil) != nil {
		return l // it will take that one
	}
	l.server = lacks(&q.Group.tally, st.perServer(q.Group))
	l.pool = lacks(&st.tally, st.limits.MaxProcesses)
	return l
}

// promise keeps a place for q, for the rest of the round.
func (st *State) promise(q *Session) {
	for _, t := range st.tallies(q) {
		if t != nil {
			t.promised, t.round = t.promisedIn(st.round)+1, st.round
		}
	}
}

// evict ends a spare, or a session that nobody borrows, for the sake of a limit; a nil
// one is left out.
func (st *State) evict(s *Session, l Limit, now Moment) {
	switch {
	case s == nil:
	case s.spare && s.status < Live:
		value := st.limits.MaxProcesses
		if l == LimitServer {
			value = st.perServer(s.Group)
		}
		st.Kill(s, st.busy(l, value), Evicted, now) // who waits for its connect learns why
	default:
		st.Unlink(s, Evicted, now)
	}
}

// oldest returns what is to end first at the limit for all; nil when nothing is idle.
// Spares come before sessions, which have a state to lose.
func (st *State) oldest() *Session {
	if e, ok := st.spares.Oldest(nil); ok {
		return e.Value
	}
	if n := st.warming.Front(); n != nil {
		return n.Value
	}
	if e, ok := st.idle.Oldest(nil); ok {
		return e.Value
	}
	return nil
}

// oldest is State.oldest for the limit of a server.
func (g *Group) oldest() *Session {
	if len(g.spares) > 0 {
		return g.spares[0]
	}
	if n := g.warming.Front(); n != nil {
		return n.Value
	}
	return first(&g.idle)
}

// oldest is State.oldest for the limit of a scope, which has no spares.
func (sc *scope) oldest() *Session { return first(&sc.idle) }

// burst is how long a session that goes from call to call may keep others waiting
// at a limit before it makes room for them between two calls.
const burst = time.Second

// keepsWaiting reports whether the end of s, which is busy, would let a session start
// that has waited for longer than a burst. That one waits as long again before another
// busy session is ended for it: calls that overlap may take their time to end.
func (st *State) keepsWaiting(s *Session, now Moment) bool {
	if !s.process || st.queue.Len() == 0 {
		return false
	}
	s.looked = now
	st.round++
	for q := range st.queue.All {
		lacks := st.lacking(q)
		switch {
		case lacks == lack{}:
			st.promise(q) // of a place that is coming free
		case now >= q.patient && st.servedBy(q, s, lacks):
			q.patient = now + burst
			return true
		}
	}
	return false
}

// servedBy reports whether q may start when s has ended, and idle sessions with it.
func (st *State) servedBy(q, s *Session, lacks lack) bool {
	ofServer, ofScope := s.Group == q.Group, s.scope != nil && s.scope == q.scope
	if lacks.server && !ofServer && q.Group.oldest() == nil ||
		lacks.scope && !ofScope && q.scope.oldest() == nil {
		return false
	}
	// Whether it takes s, rather than idle sessions alone.
	return lacks.server && ofServer && q.Group.oldest() == nil ||
		lacks.scope && ofScope && q.scope.oldest() == nil ||
		lacks.pool && !lacks.server && !lacks.scope && st.oldest() == nil
}

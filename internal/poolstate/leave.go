package poolstate

// Leave takes back one borrow with its turn, or its place in line, and unlinks s
// first if why isn't empty. The last to leave files s as idle, closes it when it is
// unlinked, and gives its connect up when that isn't done. Who was sent on meanwhile
// leaves the session to which that was, and not for the sake of s.
func (st *State) Leave(s *Session, place *Place, why Reason, now Moment) {
	st.leave(s, place, why, now, now)
}

// LeaveVisit is Leave for a visitor, which is no use of what somebody has used.
func (st *State) LeaveVisit(s *Session, place *Place, why Reason, now Moment) {
	used := now
	if s.idle.Used != 0 && why == "" {
		used = s.idle.Used
	}
	st.leave(s, place, why, now, used)
}

func (st *State) leave(s *Session, place *Place, why Reason, now, used Moment) {
	if place != nil {
		if last := place.Last(); last != place {
			place, s, why = last, last.Of(), ""
		}
		if place.Err() != nil {
			return
		}
	}
	if why != "" {
		st.Unlink(s, why, now)
	}
	s.inFlight--
	s.idle.Used = max(s.idle.Used, used)
	if s.status == Queued {
		st.waiting--
	}
	if len(st.orphans) > 0 {
		st.stir(now) // they may have waited for this one
	}
	refill := s.refill && s.lost != nil // it did come up
	if refill {
		s.refill = false
	}
	st.settleLeft(s, place, now)
	if refill && !s.reason.unwanted() {
		st.refillSpares(s, now)
	}
}

// settleLeft decides what becomes of a session that somebody has just left.
func (st *State) settleLeft(s *Session, place *Place, now Moment) {
	if s.inFlight > 0 {
		st.betweenTurns(s, place, now)
		s.turns.Leave(place)
		return
	}
	s.turns.Leave(place)
	switch {
	case st.keepVisited(s, now):
	case s.ahead && s.status == Connecting && s.reason == "":
		st.putBack(s)
		st.placeFree(now) // which it may be
	case !s.linked:
		if s.reason == "" {
			s.reason = OneShot
		}
		st.settle(s, now)
	case s.status < Live:
		st.Unlink(s, Abandoned, now)
	case st.due(s, now) && st.recycle(s, now):
	default:
		st.file(s)
		st.expiresAfter(s)
		st.trim(s, now)
		if st.needed(s) {
			st.stir(now)
		}
	}
}

// betweenTurns replaces a session that still has borrowers when it is due, or has kept
// others waiting for long: with calls that never pause it would never be idle. One
// whose calls take turns is replaced between two of them, and those in line move on to
// its successor, which queues like any other; one whose calls overlap serves those that
// it has to their end.
func (st *State) betweenTurns(s *Session, place *Place, now Moment) {
	switch {
	case !s.linked || s.status != Live || place.Waits():
		return // it isn't the end of a turn
	case st.due(s, now):
		s.betweenTurns = true
		st.recycle(s, now)
		s.betweenTurns = false
	case now >= s.looked+burst/20 && st.keepsWaiting(s, now):
		st.Unlink(s, Evicted, now)
	}
}

// trim closes idle sessions beyond the cap, the least recently used first and never
// spared, which was used just now.
func (st *State) trim(spared *Session, now Moment) {
	limit := st.cfg.MaxSessions
	for limit > 0 && st.counts.Kept > limit {
		oldest, ok := st.idle.Oldest(&spared.idle)
		if !ok {
			return
		}
		st.Unlink(oldest.Value, LRU, now)
	}
}

// Called counts a tool call that was sent in s and has ended.
func (s *Session) Called() { s.calls++ }

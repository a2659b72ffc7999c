package poolstate

// enqueue lets s wait for its start.
func (st *State) enqueue(s *Session, now Moment) {
	s.admitted, s.queued = make(chan struct{}), now
	s.place = st.queue.Push(s.Key.Scope, s)
	st.classify(s, now)
}

// dequeue ends the waiting of s, which won't start.
func (st *State) dequeue(s *Session) {
	st.queue.Remove(s.place)
	st.waitFor(s, LimitNone)
	s.place = nil
	close(s.admitted)
}

// classify notes what s waits for now, and makes room there if that is another limit
// than before.
func (st *State) classify(s *Session, now Moment) Limit {
	l, _ := st.full(s.Group, s.scope)
	if l != s.waitsFor {
		st.waitFor(s, l)
		st.makeRoom(s.Group, s.scope, now)
	}
	return l
}

func (st *State) waitFor(s *Session, l Limit) {
	count := func(l Limit, by int) {
		switch l {
		case LimitProcesses, LimitStarting:
			// Who waits for the one may wait for the other a moment later.
			st.tally.waiting += by
		case LimitServer:
			s.Group.tally.waiting += by
		case LimitScope:
			s.scope.tally.waiting += by
		}
	}
	count(s.waitsFor, -1)
	count(l, 1)
	s.waitsFor = l
}

// admit starts those in the queue that may start now, in turn. It runs whenever a
// place has become free.
func (st *State) admit(now Moment) {
	for st.queue.Len() > 0 && !st.closed {
		if l := st.limits.MaxProcesses; l > 0 && st.tally.processes >= l {
			return // nobody may, whatever else they wait for
		}
		s, ok := st.queue.Pop(func(s *Session) bool { return st.classify(s, now) == LimitNone })
		if !ok {
			return
		}
		if err := st.heldOff(&Want{Key: s.Key}, now); err != nil {
			// Its server has failed while it waited.
			st.Kill(s, err, StartFailed, now)
			continue
		}
		st.pace.Note(now)
		st.waiting -= s.inFlight
		s.place = nil
		close(s.admitted)
		st.start(s, now)
	}
}

// placeFree is called when a process of g and sc has ended or is up.
func (st *State) placeFree(g *Group, sc *scope, now Moment) {
	if st.queue.Len() == 0 {
		return
	}
	st.admit(now)
	// Those that are still there may wait for another limit now.
	if g.tally.waiting > 0 {
		for m := range g.members {
			if m.waitsFor == LimitServer {
				st.classify(m, now)
			}
		}
	}
	if sc != nil && sc.tally.waiting > 0 {
		for m := range sc.members {
			if m.waitsFor == LimitScope {
				st.classify(m, now)
			}
		}
	}
	st.makeRoom(g, sc, now)
}

// makeRoom ends spares and idle sessions for those that wait, at the limit for all
// and at those of a server and a scope.
func (st *State) makeRoom(g *Group, sc *scope, now Moment) {
	for st.wants() {
		s, ok := st.spares.Oldest(nil)
		if !ok {
			s, ok = st.idle.Oldest(nil)
		}
		if !ok {
			break
		}
		st.Unlink(s.Value, Evicted, now)
	}
	st.makeRoomAmong(g.members, now, func() bool { return g.tally.wants(st.perServer(g)) })
	if sc != nil {
		st.makeRoomAmong(sc.members, now, func() bool { return sc.tally.wants(st.limits.MaxPerScope) })
	}
}

// wants reports whether MaxProcesses keeps more sessions from starting than will be
// able to soon.
func (st *State) wants() bool {
	l := st.limits.MaxProcesses
	return l > 0 && st.tally.processes >= l && st.tally.wants(l)
}

// makeRoomAmong ends the longest idle ones of a set that is as small as its limit,
// spares first, as long as more are wanted.
func (st *State) makeRoomAmong(members map[*Session]struct{}, now Moment, wanted func() bool) {
	for wanted() {
		var oldest *Session
		for m := range members {
			if m.idle.Filed() && (oldest == nil || m.spare && !oldest.spare ||
				m.spare == oldest.spare && m.idle.Used < oldest.idle.Used) {
				oldest = m
			}
		}
		if oldest == nil {
			return
		}
		st.Unlink(oldest, Evicted, now)
	}
}

// needed reports whether another call waits for the place of s.
func (st *State) needed(s *Session) bool {
	if !s.process || st.queue.Len() == 0 {
		return false
	}
	return st.wants() || s.Group.tally.wants(st.perServer(s.Group)) ||
		s.scope != nil && s.scope.tally.wants(st.limits.MaxPerScope)
}

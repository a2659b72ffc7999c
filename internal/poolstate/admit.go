package poolstate

// What an event changes for those who wait is looked at once, at its end, in this
// order: whoever stood in line for a session that was replaced goes on to its
// successor; those in the queue that may start now are started; and for those that are
// left idle sessions are ended, where that lets them start. See [State.Actions].

// stir notes that somebody who waits may have to be looked at.
func (st *State) stir(now Moment) { st.stirred, st.futile = max(st.stirred, now), false }

// dispatch does what an event has changed for those who wait.
func (st *State) dispatch() {
	for st.stirred != 0 {
		now := st.stirred
		st.stirred = 0
		st.moveLines(now)
		st.admit(now)
		st.makeRoom(now)
	}
}

// enqueue lets s wait for its start.
func (st *State) enqueue(s *Session, now Moment) {
	s.admitted, s.patient = make(chan struct{}), now+burst
	s.place = st.queue.Push(s.Key.Scope, s)
	st.countQueued(s, 1)
	st.stir(now)
}

func (st *State) countQueued(s *Session, by int) {
	for _, t := range st.tallies(s) {
		if t != nil {
			t.queued += by
		}
	}
}

// dequeue ends the waiting of s.
func (st *State) dequeue(s *Session) {
	st.queue.Remove(s.place)
	st.countQueued(s, -1)
	s.place = nil
	close(s.admitted)
}

// admit starts those in the queue that may start now, in turn.
func (st *State) admit(now Moment) {
	for st.queue.Len() > 0 && !st.closed {
		if st.poolIsFull() && st.spares.Len()+st.warming.Len() == 0 {
			return // nobody may, whatever else they wait for
		}
		s, ok := st.queue.Pop(st.mayGo)
		if !ok {
			return
		}
		if st.spareFor(s.Group, s.scope) != nil {
			st.pace.Note(now)
			st.Unlink(s, Abandoned, now)
			st.moveOn(s, now) // to the spare
			continue
		}
		if err := st.heldOff(&Want{Key: s.Key}, now); err != nil {
			// Its server has failed while it waited.
			st.Kill(s, err, StartFailed, now)
			continue
		}
		st.pace.Note(now)
		st.waiting -= s.inFlight
		st.dequeue(s)
		st.start(s, now)
	}
}

// mayGo reports whether s need not wait any longer.
func (st *State) mayGo(s *Session) bool {
	if st.spareFor(s.Group, s.scope) != nil {
		return true
	}
	full, _ := st.full(s.Group, s.scope)
	return full == LimitNone
}

// poolIsFull reports whether a limit keeps every process from starting.
func (st *State) poolIsFull() bool {
	l := &st.limits
	return l.MaxProcesses > 0 && st.tally.processes >= l.MaxProcesses ||
		l.MaxStarting > 0 && st.starts.Len() >= l.MaxStarting
}

// placeFree is called when a process has ended or is up.
func (st *State) placeFree(now Moment) {
	if st.queue.Len() > 0 {
		st.stir(now)
	}
}

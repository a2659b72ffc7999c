package poolstate

// The end of a connect is one of three events. Each reports whether the session was
// still wanted: when it wasn't, it was killed or given up by the last that waited,
// and whatever came up is to be closed all the same. In every case but that of a
// wanted session that is Connected, Closed follows.

// Connected publishes s, whose connection is gone when lost is closed.
func (st *State) Connected(s *Session, lost <-chan struct{}, now Moment) (wanted bool) {
	wanted = st.connectEnded(s)
	st.counts.Opened++
	if !wanted {
		st.backoff.GiveUp(&s.attempt)
		st.placeFree(s.Group, s.scope, now)
		return false
	}
	s.lost = lost
	if s.lost == nil {
		s.lost = neverLost
	}
	st.move(s, Live)
	st.backoff.Up(&s.attempt, now)
	switch {
	case s.spare:
		st.spareReady(s, now)
	case s.linked:
		st.trim(s, now)
	}
	st.Lost(s, now) // which may have been called too early
	st.placeFree(s.Group, s.scope, now)
	return true
}

// neverLost is for connections that can't say that they are lost.
var neverLost = make(chan struct{})

// Failed ends s, which didn't come up: its server has failed once more.
func (st *State) Failed(s *Session, reason error, now Moment) (wanted bool) {
	return st.failed(s, now, func() { st.heldOffFor(s, st.backoff.Fail(&s.attempt, reason, now)) })
}

// Refused ends s, whose connect was refused for bad input, which says nothing of the
// server.
func (st *State) Refused(s *Session, now Moment) (wanted bool) {
	return st.failed(s, now, func() { st.backoff.GiveUp(&s.attempt) })
}

func (st *State) failed(s *Session, now Moment, note func()) (wanted bool) {
	wanted = st.connectEnded(s)
	if wanted {
		st.move(s, Closing)
		st.Unlink(s, StartFailed, now)
		st.counts.Failures++
		note()
	} else {
		st.backoff.GiveUp(&s.attempt)
	}
	st.placeFree(s.Group, s.scope, now)
	return wanted
}

func (st *State) connectEnded(s *Session) (wanted bool) {
	if s.process {
		st.starting--
	}
	return s.status == Connecting
}

// Lost unlinks a live session whose connection is gone, so that the next call finds
// none rather than this. One that is still connecting is left to the end of its
// connect, and one that is unlinked to its last borrower.
func (st *State) Lost(s *Session, now Moment) {
	if s.status == Live && (s.linked || s.spare) && s.Lost() {
		st.Unlink(s, Crashed, now)
	}
}

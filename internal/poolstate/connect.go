package poolstate

import "time"

// The end of a connect is one of three events. Each reports whether the session was
// still wanted: when it wasn't, it was killed or given up by the last that waited,
// and whatever came up is to be closed all the same. In every case but that of a
// wanted session that is Connected, Closed follows.

// Connected publishes s, whose connection is gone when lost is closed.
func (st *State) Connected(s *Session, lost <-chan struct{}, now Moment) (wanted bool) {
	wanted = st.connectEnded(s)
	st.counts.Opened++
	st.placeFree(now)
	if !wanted {
		st.backoff.GiveUp(&s.attempt)
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
	if s.doubted {
		st.probe(s)
		st.act(Probe, s)
	} else {
		s.turns.Open()
	}
	st.Lost(s, now) // which may have been called too early
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
	st.placeFree(now)
	if !st.connectEnded(s) {
		st.backoff.GiveUp(&s.attempt)
		return false
	}
	st.counts.Failures++
	note()
	if s.ahead && s.linked || s.oneShot && s.ahead {
		// It was begun before those who wait for it came: theirs is still to be tried.
		st.Unlink(s, StartFailed, now)
		st.moveOn(s, now)
	}
	if s.status < Closing {
		st.move(s, Closing)
	}
	st.Unlink(s, StartFailed, now)
	return true
}

func (st *State) connectEnded(s *Session) (wanted bool) {
	st.starts.Remove(&s.starting)
	return s.status == Connecting
}

// slowStart is how long a connect counts for MaxStarting: a server that takes longer
// waits for something else than a processor, or for ever.
const slowStart = 5 * time.Second

// watchStarts sees to it that Expire is called when a connect becomes a slow one, where
// that matters.
func (st *State) watchStarts() {
	if s := first(&st.starts); s != nil && st.limits.MaxStarting > 0 {
		st.wakeAt(s, s.begun+slowStart)
	}
}

// passSlowStarts lets others start beside the connects that have become slow, and
// returns when the next one does; zero when that doesn't matter.
func (st *State) passSlowStarts(now Moment) (next Moment) {
	for st.limits.MaxStarting > 0 {
		s := first(&st.starts)
		switch {
		case s == nil:
			return 0
		case s.begun+slowStart > now:
			return s.begun + slowStart
		}
		st.starts.Remove(&s.starting)
		st.placeFree(now)
	}
	return 0
}

// Lost unlinks a live session whose connection is gone, so that the next call finds
// none rather than this. One that is still connecting is left to the end of its
// connect, and one that is unlinked to its last borrower.
func (st *State) Lost(s *Session, now Moment) {
	if s.status == Live && (s.linked || s.spare) && s.Lost() {
		st.Unlink(s, Crashed, now)
	}
}

package poolstate

// A session is in doubt when a call of it was given up: its server may be busy with
// it, or wedged. It is asked at once whether it answers, whoever needs it next, and
// whoever needs it meanwhile waits for the answer: it is chosen last. It isn't borrowed
// for that, so that it can be ended for any reason as before.

// Doubt has s asked whether it answers; the outcome is [State.Answered],
// [State.Wedged] or [State.Lost]. It reports whether the action Probe follows: a session
// that is asked already isn't asked twice, one that nobody else will use not at all, and
// one whose connect is under way after that.
func (st *State) Doubt(s *Session) bool {
	s.doubted = s.doubted || s.status == Connecting
	if s.status != Live || s.Lost() || !s.linked && s.inFlight < 2 {
		return false
	}
	s.doubted = true
	if s.probed {
		return false
	}
	st.probe(s)
	st.act(Probe, s)
	return true
}

// Inspect begins a look at an idle session or a spare that wasn't used after since, as
// Doubt does, but for the action. It reports false if that one is to be left alone.
func (st *State) Inspect(s *Session, since Moment) bool {
	if !s.idle.Filed() || s.idle.Used > since || s.probed || s.Lost() {
		return false
	}
	st.probe(s)
	return true
}

func (st *State) probe(s *Session) {
	s.probed = true
	s.turns.Hold()
}

// Answered ends the doubt about s.
func (st *State) Answered(s *Session) {
	s.probed, s.doubted = false, false
	if s.status == Live && !s.stale.Load() {
		s.turns.Open()
	}
}

// Wedged ends s, which doesn't answer. Those in line go on to its successor, and calls
// under way fail with cause.
func (st *State) Wedged(s *Session, cause error, now Moment) {
	s.probed = false
	if s.status >= Closing {
		return
	}
	st.Unlink(s, Unanswered, now)
	st.moveOn(s, now)
	st.Kill(s, cause, Unanswered, now)
}

// Idle calls yield with the sessions that nobody borrows, and the spares.
func (st *State) Idle(yield func(*Session) bool) {
	for s := range st.idle.All {
		if !yield(s) {
			return
		}
	}
	for s := range st.spares.All {
		if !yield(s) {
			return
		}
	}
}

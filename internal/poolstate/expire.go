package poolstate

import "github.com/mcppool/mcppool/internal/idle"

// Expire ends the sessions and spares whose idle time is up, and returns when it is
// to be called next, or zero when that isn't known yet: the action Wake says so then.
//
// Sessions that become idle expire later than those that did before, so that a busy
// pool's calls ask for a Wake about once in an idle timeout.
func (st *State) Expire(now Moment) (next Moment) {
	next = st.expire(&st.idle, now)
	if spare := st.expire(&st.spares, now); next == 0 || spare != 0 && spare < next {
		next = spare
	}
	st.wakes = next
	return next
}

func (st *State) expire(list *idle.Lists[*Session], now Moment) (next Moment) {
	e, next := list.Expired(now)
	for e != nil {
		st.Unlink(e.Value, Idle, now)
		e, next = list.Expired(now)
	}
	return next
}

// expiresAfter sees to it that Expire is called when the idle time of s, which is
// filed, is up.
func (st *State) expiresAfter(s *Session) {
	t := s.idle.Timeout()
	if t <= 0 {
		return
	}
	at := s.idle.Used + t
	if st.wakes != 0 && at >= st.wakes {
		return
	}
	st.wakes = at
	st.act(Wake, s)
}

// IdleSessions appends the linked sessions that nobody borrows.
func (st *State) IdleSessions(to []*Session) []*Session {
	for s := range st.idle.All {
		to = append(to, s)
	}
	return to
}

// BorrowIdle borrows an idle session to look whether it answers, if it is idle still and
// wasn't used after since; who has it leaves with a time of zero, so that it doesn't
// look used.
func (st *State) BorrowIdle(s *Session, since Moment) bool {
	if !s.idle.Filed() || s.spare || s.idle.Used > since {
		return false
	}
	s.inFlight++
	st.idle.Remove(&s.idle)
	s.turns.Take() // nobody has it
	return true
}

// Oldest returns the idle session that was used least recently; nil if there is none.
func (st *State) Oldest() *Session {
	if e, ok := st.idle.Oldest(nil); ok {
		return e.Value
	}
	return nil
}

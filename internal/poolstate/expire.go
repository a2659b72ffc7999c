package poolstate

import "github.com/mcppool/mcppool/internal/idle"

// Expire does what is due: it ends the sessions and spares whose idle time is up, and
// lets others start beside a connect that has become slow. It returns when it is to be
// called next, or zero when that isn't known yet: the action Wake says so then.
//
// Sessions that become idle expire later than those that did before, so that a busy
// pool's calls ask for a Wake about once in an idle timeout.
func (st *State) Expire(now Moment) (next Moment) {
	for _, at := range [...]Moment{st.expire(&st.idle, now), st.expire(&st.spares, now), st.passSlowStarts(now)} {
		if next == 0 || at != 0 && at < next {
			next = at
		}
	}
	st.wakes = next
	return next
}

func (st *State) expire(list *idle.Lists[*Session], now Moment) (next Moment) {
	for range batch {
		e, next := list.Expired(now)
		if e == nil {
			return next
		}
		st.Unlink(e.Value, Idle, now)
	}
	return now // there may be more
}

// expiresAfter sees to it that Expire is called when the idle time of s, which is
// filed, is up.
func (st *State) expiresAfter(s *Session) {
	t := s.idle.Timeout()
	if t <= 0 {
		return
	}
	st.wakeAt(s, s.idle.Used+t)
}

// wakeAt sees to it that Expire is called at a time at which something is due for s.
func (st *State) wakeAt(s *Session, at Moment) {
	if st.wakes != 0 && at >= st.wakes {
		return
	}
	st.wakes = at
	st.act(Wake, s)
}

// Oldest returns the idle session that was used least recently; nil if there is none.
func (st *State) Oldest() *Session {
	if e, ok := st.idle.Oldest(nil); ok {
		return e.Value
	}
	return nil
}

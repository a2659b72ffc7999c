package poolstate

import (
	"errors"
	"math/rand/v2"
)

// due reports whether s is to be replaced.
func (st *State) due(s *Session, now Moment) bool {
	return s.status == Live && (s.heavy ||
		st.cfg.MaxCalls > 0 && s.calls >= uint64(st.cfg.MaxCalls) ||
		s.recycleAt != 0 && now >= s.recycleAt)
}

// setLifetime begins the life of s, which for a spare is when it is handed out.
func (st *State) setLifetime(s *Session, now Moment) {
	if t := st.cfg.MaxLifetime; t > 0 {
		s.recycleAt = now + t - rand.N(t/10+1)
	}
}

// recycle replaces s, which is due, if that may be done now, and reports whether it
// did: a session of a scope when no call of it is under way, and a shared one as soon
// as a spare can take its place. One whose server is held off serves on.
func (st *State) recycle(s *Session, now Moment) bool {
	switch {
	case !s.shared:
		if s.inFlight > 0 && !s.betweenTurns || st.heldOff(&Want{Key: s.Key}, now) != nil {
			return false
		}
	case len(s.Group.spares) > 0:
	default:
		if !st.noRoomForSpare(s, now) || s.inFlight > 0 && !s.betweenTurns {
			return false // it serves on until its successor is there
		}
	}
	st.Unlink(s, Recycled, now)
	return true
}

// noRoomForSpare begins the connect of a successor of a shared session, and reports
// whether a limit leaves no room for one beside it.
func (st *State) noRoomForSpare(s *Session, now Moment) bool {
	if s.Group.warming.Len() > 0 {
		return false
	}
	w := Want{Key: Key{Server: s.Key.Server}, Policy: s.policy}
	_, err := st.beginSpare(&w, now)
	var busy *BusyError
	return errors.As(err, &busy)
}

// Heavy marks a session that uses too much memory, to be replaced when it is free. A
// spare is at once.
func (st *State) Heavy(s *Session, now Moment) {
	s.heavy = true
	switch {
	case s.spare:
		st.Unlink(s, Recycled, now)
	case s.linked && s.inFlight == 0 && s.status == Live:
		st.recycle(s, now)
	}
}

// IsHeavy reports whether s was marked.
func (s *Session) IsHeavy() bool { return s.heavy }

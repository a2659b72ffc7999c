package poolstate

import (
	"errors"
	"slices"
)

// Spares are sessions that are connected, or connecting, before anybody needs them, and
// that no scope has touched. One is handed to one scope, or one one-shot call, once.
// They hide the cold start of a server.

// Prewarm begins spares of w's server, so that there are n with those that are there,
// and returns those that are connecting.
func (st *State) Prewarm(w *Want, n int, now Moment) (connecting []*Session, err error) {
	if st.closed {
		return nil, ErrClosed
	}
	have := 0
	if g := st.groups[w.Server]; g != nil {
		have = len(g.spares) + g.warming.Len()
		for n := g.warming.Front(); n != nil; n = n.Next() {
			connecting = append(connecting, n.Value)
		}
	}
	for ; have < n; have++ {
		s, err := st.beginSpare(w, now)
		if err != nil {
			return connecting, err
		}
		connecting = append(connecting, s)
	}
	return connecting, nil
}

// errBound is a bug of who asks; what the State asks for itself goes without.
var errBound = errors.New("a server whose sessions belong to a scope from their start has no spares")

// beginSpare makes a spare and begins its connect. It fails when the server is held
// off, or a limit is reached.
func (st *State) beginSpare(w *Want, now Moment) (*Session, error) {
	if w.Bound {
		return nil, errBound
	}
	if err := st.heldOff(w, now); err != nil {
		return nil, err
	}
	g := st.groupFor(w)
	if full, value := st.fullFor(w, g, nil); full != LimitNone {
		return nil, st.busy(full, value)
	}
	s := st.newSession(g, w, now)
	s.ahead = true
	st.warm(s)
	st.start(s, now)
	return s, nil
}

// spareReady files a spare that has come up.
func (st *State) spareReady(s *Session, now Moment) {
	st.warmed(s)
	s.Group.spares = append(s.Group.spares, s)
	s.idle.Used = now
	st.spares.Join(&s.idle, s.policy.IdleTimeout)
	st.spares.File(&s.idle)
	st.expiresAfter(s)
}

// warm makes s a spare that is connecting.
func (st *State) warm(s *Session) {
	s.spare = true
	s.Group.warming.PushBack(&s.inGroup)
	st.warming.PushBack(&s.inState)
}

// warmed takes a spare out of those that are connecting.
func (st *State) warmed(s *Session) {
	s.Group.warming.Remove(&s.inGroup)
	st.warming.Remove(&s.inState)
}

func (g *Group) hasSpare() bool { return len(g.spares)+g.warming.Len() > 0 }

// spareFor returns the spare of a server that a call would get, nil when there is none
// for it: the newest one, one that is in doubt after the others, and then the one that
// has been connecting for the longest time.
func (st *State) spareFor(g *Group, sc *scope) *Session {
	if g == nil || !g.hasSpare() {
		return nil
	}
	if sc != nil && st.limits.MaxPerScope > 0 && sc.tally.processes >= st.limits.MaxPerScope {
		return nil // the call waits, as it would for a new one
	}
	var doubted *Session
	for _, s := range slices.Backward(g.spares) {
		switch {
		case s.Lost():
		case !s.probed:
			return s
		case doubted == nil:
			doubted = s
		}
	}
	if doubted != nil {
		return doubted
	}
	if n := g.warming.Front(); n != nil {
		return n.Value
	}
	return nil
}

// takeSpare hands a spare to a call; nil when there is none for it.
func (st *State) takeSpare(w *Want, now Moment) *Session {
	g := st.groups[w.Server]
	if g == nil || w.Remote {
		return nil
	}
	for _, s := range slices.Backward(g.spares) {
		if s.Lost() {
			st.Unlink(s, Crashed, now)
		}
	}
	s := st.spareFor(g, st.scopes[w.key().Scope])
	if s == nil {
		return nil
	}
	st.takeOut(s)
	s.idle.Used = 0
	st.setLifetime(s, now)
	st.assign(s, w)
	if s.linked && s.status == Live {
		st.trim(s, now)
	}
	return s
}

// putBack makes s, which was handed out while it is connecting and which all have left
// before it has come up, a spare again.
func (st *State) putBack(s *Session) {
	switch {
	case s.oneShot:
		s.oneShot = false
		s.setVisited(false)
	case s.shared:
		s.Group.shared = slices.DeleteFunc(s.Group.shared, func(other *Session) bool { return other == s })
	default:
		delete(st.sessions, s.Key)
	}
	if s.linked {
		s.linked, s.follows = false, ""
		st.counts.Kept--
		st.idle.Leave(&s.idle)
	}
	if s.shared {
		s.shared = false
		s.Group.sharing--
	}
	if sc := s.scope; sc != nil {
		s.scope = nil
		sc.tally.processes--
		st.forgetIn(sc, s)
	}
	s.Key.Scope = ""
	s.idle.Used, s.recycleAt = 0, 0
	s.turns.Overlap = false
	st.warm(s)
}

// takeOut takes a spare out of what may be handed out.
func (st *State) takeOut(s *Session) {
	s.spare = false
	i := slices.Index(s.Group.spares, s)
	if i < 0 {
		st.warmed(s)
		return
	}
	s.Group.spares = slices.Delete(s.Group.spares, i, i+1)
	st.spares.Leave(&s.idle)
}

// refillSpares begins the connects of missing spares for the server of s, if nobody
// waits for a place and there is room.
func (st *State) refillSpares(s *Session, now Moment) {
	w := Want{Key: Key{Server: s.Key.Server}, Policy: s.policy}
	for !st.closed && st.queue.Len() == 0 {
		g := st.groups[w.Server]
		if g == nil || len(g.spares)+g.warming.Len() >= w.Spares {
			return
		}
		if _, err := st.beginSpare(&w, now); err != nil {
			return
		}
	}
}

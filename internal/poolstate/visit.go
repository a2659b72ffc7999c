package poolstate

// A visitor asks a server what touches no state, such as which tools it has, so that
// any session will do: that of its scope, a spare, one of another scope between two
// calls. A session that has to be begun for a visit is nobody's: whoever calls the
// server while it connects adopts it, and else it is kept as a spare. Of a server whose
// sessions are Bound it is the visitor's scope's, or without one ends with the visit.

// host returns the session that a visitor is sent to; nil when there is none but maybe
// a spare.
func (st *State) host(w *Want) *Session {
	if s := st.sessions[w.Key]; s != nil && w.Scope != "" {
		return s
	}
	g := st.groups[w.Server]
	if g == nil || len(g.spares) > 0 {
		return nil
	}
	if n := g.idle.Back(); n != nil && !n.Value.Lost() {
		return n.Value
	}
	var best *Session
	looked := 0
	for s := range g.members {
		if looked++; looked > maxLooked {
			break
		}
		if !s.linked || s.status == Queued || s.Lost() {
			continue
		}
		if best == nil || better(s, best) {
			best = s
		}
	}
	return best
}

// maxLooked is how many sessions are looked at for a visitor when none is idle.
const maxLooked = 256

// better reports whether a would answer a visitor sooner than b.
func better(a, b *Session) bool {
	switch {
	case a.status != b.status:
		return a.status == Live
	case a.inFlight != b.inFlight:
		return a.inFlight < b.inFlight
	default:
		return a.ID < b.ID
	}
}

// adoptable returns a session that connects for a visitor and can be that of w, for
// which there is none. One that is live isn't adopted, since its visitor may look at its
// policy without the lock.
func (st *State) adoptable(w *Want) *Session {
	g := st.groups[w.Server]
	if g == nil || w.Any || w.Remote || w.Scope == "" && !w.Shared {
		return nil
	}
	if sc := st.scopes[w.key().Scope]; sc != nil && st.limits.MaxPerScope > 0 && sc.tally.processes >= st.limits.MaxPerScope {
		return nil
	}
	for s := range g.visited {
		if s.status == Connecting && s.reason == "" {
			return s
		}
	}
	return nil
}

// adopt makes a session that is adoptable that of w; nil when there is none.
func (st *State) adopt(w *Want) *Session {
	s := st.adoptable(w)
	if s != nil {
		s.oneShot = false
		s.setVisited(false)
		st.assign(s, w)
	}
	return s
}

// Visited reports whether the session was begun, or taken from the spares, for a
// visitor, and is still nobody's.
func (s *Session) Visited() bool {
	_, visited := s.Group.visited[s]
	return visited
}

func (s *Session) setVisited(visited bool) {
	switch g := s.Group; {
	case !visited:
		delete(g.visited, s)
	case g.visited == nil:
		g.visited = map[*Session]struct{}{s: {}}
	default:
		g.visited[s] = struct{}{}
	}
}

// keepVisited makes a session that its visitor has left a spare, which goes to those who
// wait for one or for its place.
func (st *State) keepVisited(s *Session, now Moment) (kept bool) {
	if !s.Visited() || s.status != Live || s.reason != "" || s.cause != nil || s.Lost() || st.closed {
		return false
	}
	s.oneShot = false
	s.setVisited(false)
	st.warm(s) // spareReady takes it for one that was connecting
	st.spareReady(s, now)
	st.stir(now)
	return true
}

package poolstate

import "slices"

// Spares are connected sessions that no scope has touched. One is handed to one scope,
// or one one-shot call, once. They hide the cold start of a server.

// Prewarm begins spares of w's server, so that there are n with those that are there,
// and returns those that are connecting.
func (st *State) Prewarm(w *Want, n int, now Moment) (connecting []*Session, err error) {
	if st.closed {
		return nil, ErrClosed
	}
	have := 0
	if g := st.groups[w.Server]; g != nil {
		have = len(g.spares) + g.starting
		for s := range g.members {
			if s.spare && s.status == Connecting {
				connecting = append(connecting, s)
			}
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

// spareReady files a spare that has come up.
func (st *State) spareReady(s *Session, now Moment) {
	s.Group.starting--
	s.Group.spares = append(s.Group.spares, s)
	s.idle.Used = now
	st.spares.Join(&s.idle, s.policy.IdleTimeout)
	st.spares.File(&s.idle)
	st.expiresAfter(s)
	// A call may wait for a place to start the same server: this one is there.
	for m := range s.Group.members {
		if m.status == Queued && m.waitsFor != LimitScope {
			st.Kill(m, ErrReplaced, Abandoned, now)
			return
		}
	}
}

// takeSpare hands a spare to a call, borrowed; nil when there is none for it.
func (st *State) takeSpare(w *Want, now Moment) *Session {
	g := st.groups[w.Server]
	for g != nil && len(g.spares) > 0 {
		s := g.spares[len(g.spares)-1]
		if s.Lost() {
			st.Unlink(s, Crashed, now)
			continue
		}
		sc := st.scopes[w.key().Scope]
		if sc != nil && st.limits.MaxPerScope > 0 && sc.tally.processes >= st.limits.MaxPerScope {
			return nil // it waits, as it would for a new one
		}
		g.spares = g.spares[:len(g.spares)-1]
		st.spares.Leave(&s.idle)
		s.spare, s.idle.Used = false, 0
		s.inFlight = 1
		st.setLifetime(s, now)
		st.assign(s, w)
		if s.linked {
			st.trim(s, now)
		}
		return s
	}
	return nil
}

// dropSpare takes a spare out of what may be handed out.
func (st *State) dropSpare(s *Session) {
	s.spare = false
	i := slices.Index(s.Group.spares, s)
	if i < 0 {
		s.Group.starting-- // it is connecting
		return
	}
	s.Group.spares = slices.Delete(s.Group.spares, i, i+1)
	s.stale.Store(true)
	s.turns.MoveOn()
	st.spares.Leave(&s.idle)
}

// refillSpares begins the connects of missing spares for the server of s, if nobody
// waits for a place and there is room.
func (st *State) refillSpares(s *Session, now Moment) {
	w := Want{Key: Key{Server: s.Key.Server}, Policy: s.policy}
	for !st.closed && st.queue.Len() == 0 {
		g := st.groups[w.Server]
		if g == nil || len(g.spares)+g.starting >= w.Spares {
			return
		}
		if _, err := st.beginSpare(&w, now); err != nil {
			return
		}
	}
}

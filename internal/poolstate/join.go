package poolstate

import "errors"

var (
	// ErrClosed refuses whoever comes after [State.Refuse].
	ErrClosed = errors.New("the pool is closed")
	// ErrReplaced sends a borrower on to another session of its key.
	ErrReplaced = errors.New("the session was replaced")
)

// Join finds or begins the session that w asks for, counts the caller as in flight,
// and returns the caller's place in the line for it, which is nil when it is the
// caller's turn. A session that is begun has no Owner yet. Who has joined leaves. Who
// joins again with the same Want stands before those who first did so later.
//
// The errors are [ErrClosed], [*BusyError] and [*HeldOffError].
func (st *State) Join(w *Want, now Moment) (*Session, *Place, error) {
	if st.closed {
		return nil, nil, ErrClosed
	}
	if w.arrived == 0 {
		st.arrivals++
		w.arrived = st.arrivals
	}
	if s := st.orphanOf(w); s != nil { // those in its line came before, and are about to move
		st.borrow(s, 1)
		return s, s.turns.Take(w.arrived), nil
	}
	if st.queueIsFull() && st.wouldWait(w, now) {
		return nil, nil, st.busy(LimitWaiting, st.limits.MaxWaiting)
	}
	s, err := st.find(w, now)
	if err != nil {
		return nil, nil, err
	}
	st.borrow(s, 1)
	return s, s.turns.Take(w.arrived), nil
}

// existing returns the session that w would share; nil when there is none.
func (st *State) existing(w *Want, now Moment) *Session {
	switch {
	case w.Remote:
		return nil
	case w.Shared:
		return st.leastBusy(w, now)
	case w.Any:
		return st.host(w)
	case w.Scope != "":
		return st.sessions[w.Key]
	default:
		return nil
	}
}

// find returns the session that w is to share, or a new one.
func (st *State) find(w *Want, now Moment) (*Session, error) {
	s := st.existing(w, now)
	if s == nil {
		s = st.adopt(w)
	}
	switch {
	case s == nil:
	case s.status == Live && s.Lost():
		st.Unlink(s, Crashed, now)
	case !w.Any && st.due(s, now) && !st.queueIsFull() && st.recycle(s, now):
	default:
		return s, nil
	}
	if s = st.takeSpare(w, now); s != nil {
		return s, nil
	}
	return st.begin(w, now)
}

// wouldWait reports whether w would get a session that waits at a limit.
func (st *State) wouldWait(w *Want, now Moment) bool {
	if s := st.existing(w, now); s != nil && !(s.status == Live && s.Lost()) {
		return s.status == Queued
	}
	g, sc := st.groupFor(w), st.scopes[w.key().Scope]
	if w.Remote || st.heldOff(w, now) != nil || st.spareFor(g, sc) != nil || st.adoptable(w) != nil {
		return false
	}
	full, _ := st.fullFor(w, g, sc)
	return full != LimitNone
}

// leastBusy returns the session of a shared server with the fewest borrowers, nil
// when another one may be started. One that may not answer soon is chosen last.
func (st *State) leastBusy(w *Want, now Moment) *Session {
	g := st.groups[w.Server]
	if g == nil {
		return nil
	}
	var best *Session
	for _, s := range g.shared {
		if best == nil || s.before(best, now) {
			best = s
		}
	}
	if best == nil || best.inFlight == 0 && !best.doubted || g.sharing >= max(w.Processes, 1) {
		return best
	}
	full, _ := st.full(g, nil)
	if full != LimitNone || st.heldOff(w, now) != nil {
		return best
	}
	return nil
}

// before reports whether a call is better served by s than by other.
func (s *Session) before(other *Session, now Moment) bool {
	if a, b := s.late(now), other.late(now); a != b {
		return b
	}
	return s.inFlight < other.inFlight
}

// late reports whether s, which calls can find, may not serve one soon.
func (s *Session) late(now Moment) bool {
	return s.probed || s.status == Connecting && now >= s.begun+slowStart
}

// begin makes the session that w asks for. It begins its connect, or queues it when a
// limit is reached; it fails when the server is held off.
func (st *State) begin(w *Want, now Moment) (*Session, error) {
	if err := st.heldOff(w, now); err != nil {
		return nil, err
	}
	g := st.groupFor(w)
	full := LimitNone
	if !w.Remote {
		full, _ = st.fullFor(w, g, st.scopes[w.key().Scope])
	}
	s := st.newSession(g, w, now)
	st.assign(s, w)
	if full != LimitNone {
		st.enqueue(s, now)
	} else {
		st.start(s, now)
	}
	return s, nil
}

// groupFor returns the group of w's server; one that is new isn't in the map yet,
// since a refusal is to leave nothing behind.
func (st *State) groupFor(w *Want) *Group {
	if g := st.groups[w.Server]; g != nil {
		return g
	}
	return &Group{Digest: w.Server, members: make(map[*Session]struct{})}
}

func (st *State) newSession(g *Group, w *Want, now Moment) *Session {
	st.groups[g.Digest] = g
	st.lastID++
	s := &Session{
		ID:      st.lastID,
		Group:   g,
		Key:     Key{Server: w.Server},
		Opened:  now,
		killed:  make(chan struct{}),
		process: !w.Remote,
	}
	s.setPolicy(w.Policy)
	s.turns.Of = s
	s.idle.Value, s.inGroup.Value, s.inScope.Value, s.inState.Value, s.starting.Value = s, s, s, s, s
	g.members[s] = struct{}{}
	st.counts.Open++
	st.counts.of[Queued]++
	st.counts.Connects++
	return s
}

// setPolicy has s kept as the call says that opens it.
func (s *Session) setPolicy(p Policy) {
	if s.policy.Exclusive {
		s.Group.exclusive--
	}
	s.policy = p
	if p.Exclusive {
		s.Group.exclusive++
	}
}

// assign gives s its key and policy, and makes it known to calls if it is to be kept.
func (st *State) assign(s *Session, w *Want) {
	s.Key = w.key()
	s.setPolicy(w.Policy)
	s.shared = w.Shared
	s.refill = w.Spares > 0
	s.turns.Overlap = w.Concurrent
	if name := s.Key.Scope; name != "" {
		sc := st.scopes[name]
		if sc == nil {
			sc = &scope{members: make(map[*Session]struct{}, 1)}
			st.scopes[name] = sc
		}
		sc.members[s] = struct{}{}
		s.scope = sc
		if s.ran {
			sc.tally.processes++ // a spare, which runs already
		}
	}
	switch {
	case w.Remote, s.Key.Scope == "" && !w.Shared:
		s.oneShot = true
		s.setVisited(w.Any && !w.Remote && !w.Bound)
		return
	case s.shared:
		s.Group.shared = append(s.Group.shared, s)
		s.Group.sharing++
	default:
		st.sessions[s.Key] = s
	}
	s.linked, s.follows = true, st.ends.of(s.Key)
	st.counts.Kept++
	st.idle.Join(&s.idle, w.IdleTimeout)
}

// start begins the connect of s.
func (st *State) start(s *Session, now Moment) {
	st.move(s, Connecting)
	s.begun = now
	if s.process {
		st.starts.PushBack(&s.starting)
		st.watchStarts()
	}
	if !s.spare {
		st.setLifetime(s, now)
	}
	if s.attempt = st.backoff.Begin(s.Key.Server, now); s.attempt.Trial() {
		st.act(Try, s)
	}
	st.act(Connect, s)
}

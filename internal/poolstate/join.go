package poolstate

import (
	"errors"
	"time"

	"github.com/mcppool/mcppool/internal/turn"
)

var (
	// ErrClosed refuses whoever comes after [State.Refuse].
	ErrClosed = errors.New("the pool is closed")
	// ErrReplaced sends a borrower on to another session of its key.
	ErrReplaced = errors.New("the session was replaced")
)

// Join finds or begins the session that w asks for, counts the caller as in flight,
// and returns the caller's place in the line for it, which is nil when it is the
// caller's turn. A session that is begun has no Owner yet. Who has joined leaves.
//
// The errors are [ErrClosed], [*BusyError] and [*HeldOffError].
func (st *State) Join(w *Want, now Moment) (*Session, *turn.Place, error) {
	if st.closed {
		return nil, nil, ErrClosed
	}
	var s *Session
	switch {
	case w.Remote:
	case w.Shared:
		s = st.leastBusy(w, now)
	case w.Any:
		s = st.host(w)
	case w.Scope != "":
		s = st.sessions[w.Key]
	}
	if s == nil {
		s = st.adopt(w)
	}
	switch {
	case s == nil:
	case s.status == Queued && st.queueIsFull():
		return nil, nil, st.busy(LimitWaiting, st.limits.MaxWaiting)
	case s.status == Live && s.Lost():
		st.Unlink(s, Crashed, now)
	case !w.Any && st.due(s, now) && st.recycle(s, now):
	default:
		s.inFlight++
		st.idle.Remove(&s.idle)
		if s.status == Queued {
			st.waiting++
		}
		return s, s.turns.Take(), nil
	}
	s = st.takeSpare(w, now)
	if s == nil {
		var err error
		if s, err = st.begin(w, now); err != nil {
			return nil, nil, err
		}
	}
	return s, s.turns.Take(), nil
}

// leastBusy returns the session of a shared server with the fewest borrowers, nil
// when another one may be started.
func (st *State) leastBusy(w *Want, now Moment) *Session {
	g := st.groups[w.Server]
	if g == nil {
		return nil
	}
	var best *Session
	for _, s := range g.shared {
		if best == nil || s.inFlight < best.inFlight {
			best = s
		}
	}
	if best == nil || best.inFlight == 0 || len(g.shared) >= max(w.Processes, 1) {
		return best
	}
	full, _ := st.full(g, nil)
	if full != LimitNone || st.heldOff(w, now) != nil {
		return best
	}
	return nil
}

// begin makes the session that w asks for, borrowed once. It begins its connect, or
// queues it when a limit is reached; it fails when the server is held off, or the
// queue is full.
func (st *State) begin(w *Want, now Moment) (*Session, error) {
	if err := st.heldOff(w, now); err != nil {
		return nil, err
	}
	g := st.groupFor(w)
	full := LimitNone
	if !w.Remote {
		full, _ = st.full(g, st.scopes[w.key().Scope])
	}
	if full != LimitNone && st.queueIsFull() {
		return nil, st.busy(LimitWaiting, st.limits.MaxWaiting)
	}
	s := st.newSession(g, w, now)
	s.inFlight = 1
	st.assign(s, w)
	if full != LimitNone {
		st.waiting++
		st.enqueue(s, now)
	} else {
		st.start(s, now)
	}
	return s, nil
}

// beginSpare makes a spare and begins its connect. It fails when the server is held
// off, or a limit is reached.
func (st *State) beginSpare(w *Want, now Moment) (*Session, error) {
	if err := st.heldOff(w, now); err != nil {
		return nil, err
	}
	g := st.groupFor(w)
	if full, value := st.full(g, nil); full != LimitNone {
		return nil, st.busy(full, value)
	}
	s := st.newSession(g, w, now)
	s.spare = true
	g.starting++
	st.start(s, now)
	return s, nil
}

// groupFor returns the group of w's server; one that is new isn't in the map yet,
// since a refusal is to leave nothing behind.
func (st *State) groupFor(w *Want) *Group {
	g := st.groups[w.Server]
	if g == nil {
		g = &Group{Digest: w.Server, members: make(map[*Session]struct{})}
	}
	g.exclusive = w.Exclusive
	return g
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
		policy:  w.Policy,
	}
	s.idle.Value = s
	g.members[s] = struct{}{}
	st.counts.Open++
	st.counts.of[Queued]++
	st.counts.Connects++
	return s
}

// assign gives s its key and policy, and makes it known to calls if it is to be kept.
func (st *State) assign(s *Session, w *Want) {
	s.Key = w.key()
	s.policy = w.Policy
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
		s.visited = w.Any && !w.Remote
		return
	case s.shared:
		s.Group.shared = append(s.Group.shared, s)
	default:
		st.sessions[s.Key] = s
	}
	s.linked = true
	st.counts.Kept++
	st.idle.Join(&s.idle, w.IdleTimeout)
}

// start begins the connect of s.
func (st *State) start(s *Session, now Moment) {
	st.move(s, Connecting)
	if s.process {
		st.starting++
	}
	if !s.spare {
		st.setLifetime(s, now)
	}
	if s.attempt = st.backoff.Begin(s.Key.Server, now); s.attempt.Trial() {
		st.act(Try, s)
	}
	st.act(Connect, s)
}

// Leave takes back one borrow with its turn, or its place in line, and unlinks s
// first if why isn't empty. The last to leave files s as idle, closes it when it is
// unlinked, and gives its connect up when that isn't done. A now of zero leaves the
// time of its last use as it was.
func (st *State) Leave(s *Session, place *turn.Place, why Reason, now Moment) {
	if why != "" {
		st.Unlink(s, why, now)
	}
	s.inFlight--
	s.idle.Used = max(s.idle.Used, now)
	if s.status == Queued {
		st.waiting--
	}
	refill := s.refill && s.lost != nil // it did come up
	if refill {
		s.refill = false
	}
	st.settleLeft(s, place, now)
	if refill && !s.reason.unwanted() {
		st.refillSpares(s, now)
	}
}

// settleLeft decides what becomes of a session that somebody has just left.
func (st *State) settleLeft(s *Session, place *turn.Place, now Moment) {
	if s.inFlight > 0 {
		st.betweenTurns(s, place, now)
		s.turns.Leave(place)
		return
	}
	s.turns.Leave(place)
	switch {
	case st.keepVisited(s, now):
	case !s.linked:
		if s.reason == "" {
			s.reason = OneShot
		}
		st.settle(s, now)
	case s.status < Live:
		st.Unlink(s, Abandoned, now)
	case st.due(s, now) && st.recycle(s, now):
	case st.needed(s):
		st.Unlink(s, Evicted, now)
	default:
		st.idle.File(&s.idle)
		st.expiresAfter(s)
		st.trim(s, now)
	}
}

// burst is how long a session that goes from call to call may keep others waiting
// at a limit before it makes room for them between two calls.
const burst = time.Second

// betweenTurns replaces a session that still has borrowers when it is due, or has kept
// others waiting for long: with calls that never pause it would never be idle. One
// whose calls take turns is replaced between two of them, and those in line move on to
// its successor, which queues like any other; one whose calls overlap serves those that
// it has to their end.
func (st *State) betweenTurns(s *Session, place *turn.Place, now Moment) {
	switch {
	case !s.linked || s.status != Live || place.Waits():
		return // it isn't the end of a turn
	case st.due(s, now):
		s.betweenTurns = true
		st.recycle(s, now)
		s.betweenTurns = false
	case st.needed(s) && st.keepsWaiting(s, now):
		st.Unlink(s, Evicted, now)
	}
}

// keepsWaiting reports whether the place of s would serve a session that has waited for
// longer than a burst.
func (st *State) keepsWaiting(s *Session, now Moment) bool {
	for q := range st.queue.All {
		if now-q.queued < burst {
			continue
		}
		switch q.waitsFor {
		case LimitServer:
			if q.Group == s.Group {
				return true
			}
		case LimitScope:
			if q.scope == s.scope {
				return true
			}
		default:
			if st.wants() {
				return true
			}
		}
	}
	return false
}

// trim closes idle sessions beyond the cap, the least recently used first and never
// spared, which was used just now.
func (st *State) trim(spared *Session, now Moment) {
	limit := st.cfg.MaxSessions
	for limit > 0 && st.counts.Kept > limit {
		oldest, ok := st.idle.Oldest(&spared.idle)
		if !ok {
			return
		}
		st.Unlink(oldest.Value, LRU, now)
	}
}

// Called counts a tool call that was sent in s and has ended.
func (s *Session) Called() { s.calls++ }

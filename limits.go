package mcppool

import (
	"fmt"
	"time"
)

// Limits bound what runs and what waits. Zero or negative is no limit. Where a
// limit is reached, callers wait under their ctx, in order of arrival within a
// scope and in turns between scopes. They can be changed with [Pool.SetLimits].
//
// Idle sessions whose place another call needs are closed for it, the least
// recently used first: any for MaxProcesses, those of the scope for MaxPerScope,
// those of the server for MaxPerServer. Spares go before them.
type Limits struct {
	// MaxProcesses bounds the child processes (not counting those that they
	// start themselves): connected, starting, one-shot and ending ones together.
	MaxProcesses int
	// MaxStarting bounds the connects under way at a time, those that nobody waits
	// for any longer included until they have stopped.
	MaxStarting int
	// MaxPerScope bounds the processes of one scope, on all servers. One-shot
	// calls have none.
	MaxPerScope int
	// MaxPerServer bounds the processes of one server, over all scopes.
	MaxPerServer int
	// MaxWaiting bounds the callers that wait at a limit; more are refused with
	// a [*BusyError].
	MaxWaiting int
	// MaxWait is how long a caller waits at a limit before it is refused with a
	// [*BusyError].
	MaxWait time.Duration
}

// BusyError is the [ErrBusy] of a call that a limit refused. Nothing was sent.
type BusyError struct {
	Limit      string        // the field of [Limits], such as "MaxProcesses"
	Max        int           // its value
	Waiting    int           // how many callers waited at limits then
	RetryAfter time.Duration // about how long it takes until as many have been served
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("mcppool: busy: %s is %d and %d callers wait; try again in %s",
		e.Limit, e.Max, e.Waiting, e.RetryAfter.Round(time.Millisecond))
}

// Is makes every BusyError an [ErrBusy].
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// limit is one of the limits that a session can wait for.
type limit uint8

const (
	limitNone limit = iota
	limitProcesses
	limitStarting
	limitScope
	limitServer
	limitWaiting
)

func (l limit) String() string {
	return [...]string{"", "MaxProcesses", "MaxStarting", "MaxPerScope", "MaxPerServer", "MaxWaiting"}[l]
}

// tally counts the processes of a pool, a scope or a server, and the sessions
// that wait for one to end there.
type tally struct {
	processes int
	ending    int // of processes: those whose close is under way
	waiting   int // sessions in the queue because of this tally's limit, or, of the pool's, of MaxStarting
}

// wants reports whether more sessions wait than places will be free soon.
func (t *tally) wants() bool { return t.waiting > t.ending }

// tallies are those that a session counts in.
func (s *session) tallies(f func(*tally)) {
	f(&s.pool.tally)
	f(&s.group.tally)
	if s.scope != nil {
		f(&s.scope.tally)
	}
}

// SetLimits replaces the limits. Raised ones let waiting callers go at once;
// lowered ones end nothing that is busy.
func (p *Pool) SetLimits(l Limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = l
	p.admitLocked()
	for s := range p.queue.All {
		p.classifyLocked(s)
	}
	// Closing a session of another doesn't change the queue: it ends later.
	for s := range p.queue.All {
		p.makeRoomLocked(s.group, s.scope)
	}
}

// Limits gives the limits as they are now.
func (p *Pool) Limits() Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limits
}

// full is the limit that keeps a session from starting now, with its value. The
// narrow ones come first, so that who waits for those isn't taken to wait for
// everybody's. The caller must hold p.mu.
func (p *Pool) fullLocked(g *serverGroup, sc *scopeGroup) (limit, int) {
	l := &p.limits
	perServer := l.MaxPerServer
	if g.exclusive {
		perServer = 1
	}
	switch {
	case perServer > 0 && g.tally.processes >= perServer:
		return limitServer, perServer
	case sc != nil && l.MaxPerScope > 0 && sc.tally.processes >= l.MaxPerScope:
		return limitScope, l.MaxPerScope
	case l.MaxProcesses > 0 && p.tally.processes >= l.MaxProcesses:
		return limitProcesses, l.MaxProcesses
	case l.MaxStarting > 0 && p.starting >= l.MaxStarting:
		return limitStarting, l.MaxStarting
	default:
		return limitNone, 0
	}
}

// enqueueLocked lets s wait for its start. The caller must hold p.mu.
func (p *Pool) enqueueLocked(s *session, fairness string) {
	s.admitted, s.queued = make(chan struct{}), p.now()
	s.place = p.queue.Push(fairness, s)
	p.classifyLocked(s)
}

// dequeueLocked ends the waiting of s. The caller must hold p.mu.
func (p *Pool) dequeueLocked(s *session) {
	p.queue.Remove(s.place)
	p.waitForLocked(s, limitNone)
	s.place = nil
	close(s.admitted)
}

// classifyLocked notes what s waits for now, and makes room there if that is
// another limit than before. The caller must hold p.mu.
func (p *Pool) classifyLocked(s *session) limit {
	l, _ := p.fullLocked(s.group, s.scope)
	if l != s.waitsFor {
		p.waitForLocked(s, l)
		p.makeRoomLocked(s.group, s.scope)
	}
	return l
}

func (p *Pool) waitForLocked(s *session, l limit) {
	count := func(l limit, by int) {
		switch l {
		case limitProcesses, limitStarting:
			// Who waits for the one may wait for the other a moment later.
			p.tally.waiting += by
		case limitServer:
			s.group.tally.waiting += by
		case limitScope:
			s.scope.tally.waiting += by
		}
	}
	count(s.waitsFor, -1)
	count(l, 1)
	s.waitsFor = l
}

// admitLocked starts those in the queue that may start now, in turn. It runs
// whenever a place has become free. The caller must hold p.mu.
func (p *Pool) admitLocked() {
	for p.queue.Len() > 0 && !p.closed {
		if l := p.limits.MaxProcesses; l > 0 && p.tally.processes >= l {
			return // nobody may, whatever else they wait for
		}
		s, ok := p.queue.Pop(func(s *session) bool { return p.classifyLocked(s) == limitNone })
		if !ok {
			return
		}
		if err := p.heldOffLocked(s.key.server, s.label); err != nil {
			// Its server has failed while it waited.
			p.killLocked(s, err, CloseStartFailed)
			continue
		}
		p.pace.Note(p.now())
		p.waiting -= s.inFlight
		s.place = nil
		close(s.admitted)
		p.startLocked(s)
	}
}

// placeFreeLocked is called when a process of g and sc has ended or is up. The
// caller must hold p.mu.
func (p *Pool) placeFreeLocked(g *serverGroup, sc *scopeGroup) {
	if p.queue.Len() == 0 {
		return
	}
	p.admitLocked()
	// Those that are still there may wait for another limit now.
	if g.tally.waiting > 0 {
		for m := range g.members {
			if m.waitsFor == limitServer {
				p.classifyLocked(m)
			}
		}
	}
	if sc != nil && sc.tally.waiting > 0 {
		for m := range sc.members {
			if m.waitsFor == limitScope {
				p.classifyLocked(m)
			}
		}
	}
	p.makeRoomLocked(g, sc)
}

// makeRoomLocked closes spares and idle sessions for those that wait, at the
// limit for all and at those of a server and a scope. The caller must hold p.mu.
func (p *Pool) makeRoomLocked(g *serverGroup, sc *scopeGroup) {
	for p.wantsLocked() {
		s, ok := p.spares.Oldest(nil)
		if !ok {
			s, ok = p.idle.Oldest(nil)
		}
		if !ok {
			break
		}
		p.unlinkLocked(s.Value, CloseEvicted)
	}
	p.makeRoomAmongLocked(&g.tally, g.members)
	if sc != nil {
		p.makeRoomAmongLocked(&sc.tally, sc.members)
	}
}

// wantsLocked reports whether MaxProcesses keeps more sessions from starting than
// will be able to soon. The caller must hold p.mu.
func (p *Pool) wantsLocked() bool {
	l := p.limits.MaxProcesses
	return l > 0 && p.tally.processes >= l && p.tally.wants()
}

// makeRoomAmongLocked closes the longest idle ones of a set that is as small as
// its limit.
func (p *Pool) makeRoomAmongLocked(t *tally, members map[*session]struct{}) {
	for t.wants() {
		var oldest *session
		for m := range members {
			if m.idle.Filed() && (oldest == nil || m.spare && !oldest.spare ||
				m.spare == oldest.spare && m.idle.Used < oldest.idle.Used) {
				oldest = m
			}
		}
		if oldest == nil {
			return
		}
		p.unlinkLocked(oldest, CloseEvicted)
	}
}

// neededLocked reports whether another call waits for the place of s. The caller
// must hold p.mu.
func (p *Pool) neededLocked(s *session) bool {
	if !s.process || p.queue.Len() == 0 {
		return false
	}
	return p.wantsLocked() || s.group.tally.wants() || s.scope != nil && s.scope.tally.wants()
}

// busyLocked is the refusal at a limit. The caller must hold p.mu.
func (p *Pool) busyLocked(l limit, value int) *BusyError {
	// As many starts as there are callers ahead.
	return &BusyError{Limit: l.String(), Max: value, Waiting: p.waiting, RetryAfter: p.pace.For(p.waiting + 1)}
}

package mcppool

import (
	"context"
	"errors"
	"time"

	"github.com/mcppool/mcppool/internal/turn"
)

// What sends a borrower on to a new session, since nothing was sent to this one.
var (
	errStale = errors.New("mcppool: session was replaced")
	errDead  = errors.New("mcppool: session was lost before it was used")
)

// borrow gives a session of (srv, scope) that is connected, counted as in flight
// and whose turn is the caller's, all under ctx. The caller gives it back with
// giveBack. On an error there is nothing to give back, and nothing was sent.
func (p *Pool) borrow(ctx context.Context, srv *Server, scope string, check func() bool) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := key{server: digestOf(srv), scope: scope}
	if srv.Shared {
		k.scope = ""
	}
	p.mu.Lock()
	s, w, err := p.joinLocked(ctx, k, srv)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.settle(ctx, s, w, k, srv, check, 0)
}

// borrowAgain exchanges a borrowed session that was lost before anything was
// sent to it for a new one, once. On an error nothing is borrowed any more.
func (p *Pool) borrowAgain(ctx context.Context, s *session, srv *Server, check func() bool) (*session, error) {
	p.mu.Lock()
	old, k := s, s.key
	p.leaveLocked(s, nil, CloseCrashed, p.now())
	s, w, err := p.joinLocked(ctx, k, srv)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	p.logRetry(old, CloseCrashed)
	return p.settle(ctx, s, w, k, srv, check, 1)
}

// settle waits until s, which the caller has joined, is connected and its turn the
// caller's; or a session that replaces s. deaths is how many sessions the caller
// has seen die.
func (p *Pool) settle(ctx context.Context, s *session, w *turn.Place, k key, srv *Server, check func() bool, deaths int) (_ *session, err error) {
	for err == nil {
		if err = s.await(ctx, w, check); err == nil {
			p.logBorrowed(s)
			return s, nil
		}
		why := CloseReason("")
		switch {
		case err == errDead:
			why = CloseCrashed
			if deaths++; deaths > 1 {
				err = s.lostError(errDead) // it dies faster than it can be used
			}
		case err == errWedged:
			why = CloseWedged
		case errors.Is(err, ErrServerClosed):
			why = CloseServerClosed
		}
		p.mu.Lock()
		if err == errTooLong {
			if s.state != stateQueued {
				// A grant or a close ties with the end of the wait, and wins.
				p.mu.Unlock()
				err = nil
				continue
			}
			err = p.busyLocked(p.fullLocked(s.group, s.scope))
		}
		old := s
		p.leaveLocked(s, w, why, p.now())
		if err == errStale || err == errDead || err == errWedged {
			// Under the same lock, so that no close of the server can pass
			// between the old session and the new one unseen.
			s, w, err = p.joinLocked(ctx, k, srv)
		}
		p.mu.Unlock()
		if err == nil && why != "" {
			p.logRetry(old, why)
		}
	}
	return nil, err
}

// joinLocked finds or begins the session of k, counts the caller as in flight, and
// gives it its turn or its place in line. The caller must hold p.mu.
func (p *Pool) joinLocked(ctx context.Context, k key, srv *Server) (*session, *turn.Place, error) {
	if p.closed {
		return nil, nil, ErrClosed
	}
	var s *session
	switch {
	case srv.IsHTTP():
	case srv.Shared:
		s = p.leastBusyLocked(k, srv)
	case k.scope != "":
		s = p.sessions[k]
	}
	switch {
	case s == nil:
	case s.state == stateQueued && p.limits.MaxWaiting > 0 && p.waiting >= p.limits.MaxWaiting:
		return nil, nil, p.busyLocked(limitWaiting, p.limits.MaxWaiting)
	case s.state == stateLive && s.isLost():
		p.unlinkLocked(s, CloseCrashed)
	case p.dueLocked(s) && p.recycleLocked(s, s.inFlight == 0):
	default:
		s.inFlight++
		p.idle.Remove(&s.idle)
		if s.state == stateQueued {
			p.waiting++
		}
		return s, s.turns.Take(), nil
	}
	s = p.takeSpareLocked(k, srv)
	if s == nil {
		var err error
		if s, err = p.newSessionLocked(ctx, k, srv, false); err != nil {
			return nil, nil, err
		}
	}
	return s, s.turns.Take(), nil
}

// leastBusyLocked is the session of a shared server with the fewest borrowers,
// or nil when another one may be started. The caller must hold p.mu.
func (p *Pool) leastBusyLocked(k key, srv *Server) *session {
	g := p.servers[k.server]
	if g == nil {
		return nil
	}
	var best *session
	for _, s := range g.shared {
		if best == nil || s.inFlight < best.inFlight {
			best = s
		}
	}
	if best == nil || best.inFlight == 0 || len(g.shared) >= max(srv.Processes, 1) {
		return best
	}
	full, _ := p.fullLocked(g, nil)
	if full != limitNone || p.heldOffLocked(k.server, "") != nil {
		return best
	}
	return nil
}

// leaveLocked takes back one borrow with its turn, or its place in line, and unlinks
// s first if why isn't empty. The last to leave files s as idle, closes it when it
// is unlinked, and gives its connect up when that isn't done. The caller must hold
// p.mu.
func (p *Pool) leaveLocked(s *session, w *turn.Place, why CloseReason, now moment) {
	if why != "" {
		p.unlinkLocked(s, why)
	}
	s.inFlight--
	s.idle.Used = max(s.idle.Used, now)
	if s.state == stateQueued {
		p.waiting--
	}
	if s.refill && s.lost != nil { // it did come up
		s.refill = false
		switch s.reason {
		case CloseRetired, CloseServerClosed, CloseShutdown, CloseByID: // it isn't wanted any more
		default:
			defer p.refillLocked(s.key.server, &s.srv)
		}
	}
	if s.inFlight > 0 {
		p.betweenTurnsLocked(s, w, now)
		s.turns.Leave(w)
		return
	}
	s.turns.Leave(w)
	switch {
	case !s.linked:
		if s.reason == "" {
			s.reason = CloseOneShot
		}
		p.settleLocked(s)
	case s.state < stateLive:
		p.unlinkLocked(s, CloseAbandoned)
	case p.dueLocked(s) && p.recycleLocked(s, true):
	case p.neededLocked(s):
		p.unlinkLocked(s, CloseEvicted)
	default:
		p.idle.File(&s.idle)
		if t := s.idle.Timeout(); t > 0 {
			p.expiresLocked(s.idle.Used + t)
		}
		p.trimLocked(s)
	}
}

// burst is how long a session that goes from call to call may keep others waiting
// at a limit before it makes room for them between two calls.
const burst = time.Second

// betweenTurnsLocked replaces a session between two of its calls when it is due, or
// has kept others waiting for long: with calls that never pause it would never be
// idle. Those in line move on to its successor, which queues like any other. The
// caller must hold p.mu.
func (p *Pool) betweenTurnsLocked(s *session, w *turn.Place, now moment) {
	switch {
	case s.turns.Overlap || !s.linked || s.state != stateLive || w.Waits():
		// It isn't the end of a turn.
	case p.dueLocked(s):
		p.recycleLocked(s, true)
	case p.neededLocked(s):
		for first := range p.queue.All {
			if now-first.queued >= burst {
				p.unlinkLocked(s, CloseEvicted)
			}
			return
		}
	}
}

// trimLocked closes idle sessions beyond the cap, the least recently used first
// and never spared, which was used just now. The caller must hold p.mu.
func (p *Pool) trimLocked(spared *session) {
	limit := p.opts.maxSessions()
	for limit > 0 && p.kept > limit {
		oldest, ok := p.idle.Oldest(&spared.idle)
		if !ok {
			return
		}
		p.unlinkLocked(oldest.Value, CloseLRU)
	}
}

// giveBack ends a borrow; why isn't empty when s must serve nobody else. A borrow
// that was for one call has an outcome.
func (p *Pool) giveBack(s *session, why CloseReason, how outcome) {
	p.mu.Lock()
	if how != outcomeNone {
		p.countLocked(s, how)
	}
	// The time is read under the lock, so that idle sessions are filed in order.
	p.leaveLocked(s, nil, why, p.now())
	p.mu.Unlock()
	p.logReleased(s, why)
}

// countLocked counts a call that has ended. The caller must hold p.mu.
func (p *Pool) countLocked(s *session, how outcome) {
	p.outcomes[how]++
	if how != outcomeNotSent {
		s.calls++
	}
}

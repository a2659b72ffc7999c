package mcppool

import (
	"context"
	"time"
)

// How closing meets connecting. A session is known to its server's group from
// the moment its connect begins, so a close finds and marks every connect under
// way; the connect sees the mark under the same lock under which it would
// publish. Nothing has to be remembered of a configuration that has no session,
// and a borrower that moves from a replaced session to a new one does so without
// giving up the lock, so that no close passes unseen in between.

// CloseServer closes every session of exactly this configuration, those that
// are connecting, one-shot or busy included: calls under way fail at once with
// [ErrServerClosed]. Calls that begin afterwards connect anew. It doesn't wait
// for the processes to end.
func (p *Pool) CloseServer(srv Server) {
	d := digestOf(&srv)
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.servers[d]; g != nil {
		p.killAllLocked(g.members, ErrServerClosed, CloseServerClosed)
	}
}

// CloseCommand is [Pool.CloseServer] for every configuration with the same
// command and args (or the same URL), whatever its env, dir and headers.
func (p *Pool) CloseCommand(srv Server) {
	d := commandDigestOf(&srv)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.servers {
		if g.command == d {
			p.killAllLocked(g.members, ErrServerClosed, CloseServerClosed)
		}
	}
}

// RetireServer closes the idle sessions of exactly this configuration now, and
// its busy ones when their call returns. Calls that wait for a busy one get a
// new session.
func (p *Pool) RetireServer(srv Server) {
	d := digestOf(&srv)
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.servers[d]; g != nil {
		for s := range g.members {
			if s.state > stateQueued { // what hasn't begun can't be out of date
				p.retireLocked(s, ErrServerClosed, CloseRetired)
			}
		}
	}
}

// retireLocked lets s end when its calls have. A spare has none: who waits for its
// connect is told at once. The caller must hold p.mu.
func (p *Pool) retireLocked(s *session, cause error, why CloseReason) {
	if s.spare {
		p.killLocked(s, cause, why)
		return
	}
	p.unlinkLocked(s, why)
}

// CloseScope closes every session of a scope, on all servers, as
// [Pool.CloseServer] does: the conversation was deleted. The empty scope has
// none.
func (p *Pool) CloseScope(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sc := p.scopes[scope]; sc != nil {
		p.killAllLocked(sc.members, ErrServerClosed, CloseScopeClosed)
	}
}

// CloseIdle closes the sessions that have been idle for at least olderThan,
// rather than at the end of their idle time. Zero closes all idle ones.
func (p *Pool) CloseIdle(olderThan time.Duration) {
	limit := p.now() - max(olderThan, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, ok := p.idle.UnusedSince(limit); ok; s, ok = p.idle.UnusedSince(limit) {
		p.unlinkLocked(s.Value, CloseIdle)
	}
}

// Shutdown refuses new calls and those that still wait with [ErrClosed], closes
// idle sessions, and lets the calls that were sent finish. When ctx
// ends before they have, they are interrupted as by [Pool.Close], and Shutdown
// returns ctx's error. Either way no process, goroutine or timer of the pool is
// left when it returns.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.refuseLocked()
	for _, g := range p.servers {
		for s := range g.members {
			p.retireLocked(s, ErrClosed, CloseShutdown)
		}
	}
	p.mu.Unlock()
	var err error
	select {
	case <-p.empty:
	default:
		select {
		case <-p.empty:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	_ = p.Close()
	return err
}

// Close refuses new calls with [ErrClosed], interrupts those under way, closes
// every session, and returns when no process, goroutine or timer of the pool is
// left. It may be called again, and from several goroutines; each call waits.
// Its error is always nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.refuseLocked()
	for _, g := range p.servers {
		p.killAllLocked(g.members, ErrClosed, CloseShutdown)
	}
	p.mu.Unlock()
	<-p.empty
	p.wg.Wait()
	p.web.Close()
	return nil
}

// refuseLocked ends the taking of calls. The caller must hold p.mu.
func (p *Pool) refuseLocked() {
	if p.closed {
		return
	}
	p.closed = true
	p.end()
	if p.open == 0 {
		close(p.empty)
	}
}

// killAllLocked kills a set of sessions. The caller must hold p.mu.
func (p *Pool) killAllLocked(set map[*session]struct{}, cause error, why CloseReason) {
	for s := range set {
		p.killLocked(s, cause, why)
	}
}

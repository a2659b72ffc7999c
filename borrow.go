package mcppool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// What sends a borrower on to a new session, since nothing was sent to this one.
var (
	errStale = errors.New("mcppool: session was replaced")
	errDead  = errors.New("mcppool: session was lost before it was used")
)

// borrow gives a session of (srv, scope) that is connected, counted as in flight
// and whose call lock is held, all under ctx. The caller gives it back with
// giveBack. On an error there is nothing to give back, and nothing was sent.
func (p *Pool) borrow(ctx context.Context, srv *Server, scope string, check func() bool) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := key{server: digestOf(srv), scope: scope}
	p.mu.Lock()
	s, err := p.joinLocked(ctx, k, srv)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.lock(ctx, s, k, srv, check, 0)
}

// borrowAgain exchanges a borrowed session that was lost before anything was
// sent to it for a new one, once. On an error nothing is borrowed any more.
func (p *Pool) borrowAgain(ctx context.Context, s *session, srv *Server, check func() bool) (*session, error) {
	<-s.callLock
	k := s.key
	p.mu.Lock()
	p.leaveLocked(s, CloseCrashed, time.Now())
	s, err := p.joinLocked(ctx, k, srv)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.lock(ctx, s, k, srv, check, 1)
}

// lock takes the call lock of s, which the caller has joined, or of a session
// that replaces it. deaths is how many sessions the caller has seen die.
func (p *Pool) lock(ctx context.Context, s *session, k key, srv *Server, check func() bool, deaths int) (_ *session, err error) {
	for err == nil {
		if err = s.lock(ctx, check); err == nil {
			return s, nil
		}
		why := CloseReason("")
		switch {
		case err == errDead:
			why = CloseCrashed
			if deaths++; deaths > 1 {
				err = s.lostError(errDead) // it dies faster than it can be used
			}
		case errors.Is(err, ErrServerClosed):
			why = CloseServerClosed
		}
		p.mu.Lock()
		p.leaveLocked(s, why, time.Now())
		if err == errStale || err == errDead {
			// Under the same lock, so that no close of the server can pass
			// between the old session and the new one unseen.
			s, err = p.joinLocked(ctx, k, srv)
		}
		p.mu.Unlock()
	}
	return nil, err
}

// joinLocked finds or begins the session of k and counts the caller as in
// flight. The caller must hold p.mu.
func (p *Pool) joinLocked(ctx context.Context, k key, srv *Server) (*session, error) {
	if p.closed {
		return nil, ErrClosed
	}
	if k.scope != "" && !srv.IsHTTP() {
		if s := p.sessions[k]; s != nil {
			if s.state != stateLive || !s.isLost() {
				s.inFlight++
				p.idle.remove(s)
				return s, nil
			}
			p.unlinkLocked(s, CloseCrashed)
		}
	}
	return p.newSessionLocked(ctx, k, srv), nil
}

// leaveLocked takes back one borrow, and unlinks s first if why isn't empty.
// The last to leave files s as idle, closes it when it is unlinked, and gives
// its connect up when that isn't done. The caller must hold p.mu, and no longer
// the call lock.
func (p *Pool) leaveLocked(s *session, why CloseReason, now time.Time) {
	if why != "" {
		p.unlinkLocked(s, why)
	}
	if s.inFlight--; s.inFlight > 0 {
		return
	}
	switch {
	case !s.linked:
		if s.reason == "" {
			s.reason = CloseOneShot
		}
		p.settleLocked(s)
	case s.state == stateConnecting:
		p.unlinkLocked(s, CloseAbandoned)
	default:
		s.lastUsed = now
		p.idle.file(s)
		if t := s.idle.class.timeout; t > 0 {
			p.expiresLocked(now.Add(t))
		}
		p.trimLocked(s)
	}
}

// trimLocked closes idle sessions beyond the cap, the least recently used first
// and never spared, which was used just now. The caller must hold p.mu.
func (p *Pool) trimLocked(spared *session) {
	limit := p.opts.maxSessions()
	for limit > 0 && len(p.sessions) > limit {
		s := p.idle.oldest(spared)
		if s == nil {
			return
		}
		p.unlinkLocked(s, CloseLRU)
	}
}

// giveBack ends a borrow in which calls were sent; why isn't empty when s must
// serve nobody else.
func (p *Pool) giveBack(s *session, why CloseReason, calls uint64) {
	<-s.callLock
	now := time.Now()
	p.mu.Lock()
	s.calls += calls
	p.calls += calls
	p.leaveLocked(s, why, now)
	p.mu.Unlock()
}

// lock waits until s is connected and the caller has its call lock, and looks
// then whether s may still be used. With errStale or another error the call lock
// isn't held.
func (s *session) lock(ctx context.Context, check func() bool) error {
	select {
	case <-s.ready:
	default:
		if err := s.await(ctx, check); err != nil {
			return err
		}
	}
	if s.connectErr != nil {
		return s.connectErr
	}
	select {
	case s.callLock <- struct{}{}:
	default:
		select {
		case s.callLock <- struct{}{}:
		case <-s.killed:
			return s.cause
		case <-s.pool.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.usable(ctx, check); err != nil {
		<-s.callLock
		return err
	}
	return nil
}

// await waits for the connect. A close, the caller's ctx and the end of the
// connect may tie: the close wins over the connect in usable, and ctx over
// neither, since what it would waste is there.
func (s *session) await(ctx context.Context, check func() bool) error {
	select {
	case <-s.ready:
	case <-s.killed:
		return s.cause
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.connectErr != nil {
		return s.connectErr
	}
	return ask(check)
}

// usable looks at s right before it is used: by then it may have been killed,
// replaced or lost, and the caller may be late or its configuration changed.
func (s *session) usable(ctx context.Context, check func() bool) error {
	switch {
	case s.isKilled():
		return s.cause
	case s.isLost(): // before stale, which it makes it: deaths are counted
		return errDead
	case s.stale.Load():
		return errStale
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ask(check)
}

// ask runs a Check. One that panics counts as a no.
func ask(check func() bool) (err error) {
	if check == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (Check panicked: %s)", ErrServerClosed, panicText(v))
		}
	}()
	if !check() {
		return ErrServerClosed
	}
	return nil
}

// panicText is what is safe to say of a panic's value: the runtime's own words,
// or else its type.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", v)
}

// whileAlive is a ctx that also ends when s is killed, with the reason as its
// cause. The returned func ends it and waits for the goroutine that watches.
func (s *session) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.killed:
			cancel(s.cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

package mcppool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcppool/mcppool/internal/poolstate"
	"github.com/mcppool/mcppool/internal/turn"
)

// What sends a borrower on to a new session, since nothing was sent to this one.
var (
	errStale  = poolstate.ErrReplaced
	errDead   = errors.New("mcppool: session was lost before it was used")
	errWedged = errors.New("mcppool: session doesn't answer")
)

// borrower is a caller that wants a session. It holds the Server itself: a pointer
// beside ctx, which is kept for the connect, would send it to the heap on each call.
type borrower struct {
	ctx   context.Context
	srv   Server
	check func() bool
	want  poolstate.Want
}

func newBorrower(ctx context.Context, srv *Server, scope string, check func() bool) borrower {
	return borrower{ctx: ctx, srv: *srv, check: check, want: poolstate.Want{
		Key: poolstate.Key{Server: digestOf(srv), Scope: scope},
	}}
}

// borrow returns a session that is connected, counted as in flight and whose turn is
// the caller's. The caller gives it back with giveBack. On an error there is nothing
// to give back, and nothing was sent.
func (p *Pool) borrow(b *borrower) (*conn, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	c, w, err := p.joinLocked(b)
	p.unlock()
	if err != nil {
		return nil, err
	}
	return p.await(b, c, w, 0)
}

// borrowAgain exchanges a borrowed session that was lost before anything was
// sent to it for a new one, once. On an error nothing is borrowed any more.
func (p *Pool) borrowAgain(b *borrower, old *conn) (*conn, error) {
	p.mu.Lock()
	p.state.Leave(old.st, nil, poolstate.Crashed, p.now())
	c, w, err := p.joinLocked(b)
	p.unlock()
	if err != nil {
		return nil, err
	}
	p.replaced(b.ctx, old, ReasonCrashed)
	return p.await(b, c, w, 1)
}

// checkLocked refuses bad input, and resolves the policy of what b wants. The caller
// must hold p.mu.
func (p *Pool) checkLocked(b *borrower) error {
	b.want.Policy = p.opts.policyOf(&b.srv)
	if p.state.Group(b.want.Server) != nil {
		return nil // as it was when that began
	}
	if p.state.Failing() > 0 {
		b.want.Label = b.srv.String()
	}
	return b.srv.validate()
}

// joinLocked finds or begins the session that b wants, counts b as in flight, and
// returns its place in line, which is nil when it is b's turn. The caller must hold
// p.mu.
func (p *Pool) joinLocked(b *borrower) (*conn, *turn.Place, error) {
	if err := p.checkLocked(b); err != nil && !p.closed {
		return nil, nil, err
	}
	s, w, err := p.state.Join(&b.want, p.now())
	if err != nil {
		return nil, nil, p.refusal(b, err)
	}
	if s.Owner == nil {
		p.ownLocked(s, &b.srv, b.ctx)
	}
	return connOf(s), w, nil
}

// refusal makes the state's refusals the pool's errors.
func (p *Pool) refusal(b *borrower, err error) error {
	var (
		busy *poolstate.BusyError
		held *poolstate.HeldOffError
	)
	switch {
	case err == poolstate.ErrClosed:
		return ErrClosed
	case errors.As(err, &busy):
		return &BusyError{Limit: busy.Limit.String(), Max: busy.Max, Waiting: busy.Waiting, RetryAfter: busy.RetryAfter}
	case errors.As(err, &held):
		return heldOffError(b.srv.String(), held)
	default:
		return err
	}
}

// await waits until c, which b has joined, is connected and its turn is b's; or a
// session that replaces c. deaths is how many sessions b has seen die.
func (p *Pool) await(b *borrower, c *conn, w *turn.Place, deaths int) (_ *conn, err error) {
	joined := true
	defer func() {
		if joined { // a func of the caller's ends the goroutine, as a test's FailNow does
			p.mu.Lock()
			defer p.unlock()
			p.state.Leave(c.st, w, reason(ReasonPanicked), p.now())
		}
	}()
	for err == nil {
		if err = c.awaitUse(b, w); err == nil {
			if p.trace.SessionBorrowed != nil {
				p.trace.SessionBorrowed(b.ctx, SessionBorrowedInfo{c.borrowedOrigin()})
			}
			joined = false
			return c, nil
		}
		why := CloseReason("")
		switch {
		case err == errDead:
			why = ReasonCrashed
			if deaths++; deaths > 1 {
				err = c.lostError(errDead) // it dies faster than it can be used
			}
		case err == errWedged:
			why = ReasonWedged
		case errors.Is(err, ErrServerClosed):
			why = ReasonServerClosed
		}
		p.mu.Lock()
		if err == errTooLong {
			if c.st.Status() != poolstate.Queued {
				// A grant or a close ties with the end of the wait, and wins.
				p.mu.Unlock()
				err = nil
				continue
			}
			err = p.refusal(b, p.state.BusyFor(c.st))
		}
		old := c
		p.state.Leave(c.st, w, reason(why), p.now())
		if err == errStale || err == errDead || err == errWedged {
			// Under the same lock, so that no close of the server can pass
			// between the old session and the new one unseen.
			c, w, err = p.joinLocked(b)
		}
		joined = err == nil
		p.unlock()
		if joined && why != "" {
			p.replaced(b.ctx, old, why)
		}
	}
	return nil, p.refusal(b, err)
}

// giveBack ends the borrow of a call.
func (p *Pool) giveBack(ctx context.Context, c *conn, done callEnd) {
	p.mu.Lock()
	p.countLocked(c, done.how)
	p.leaveLocked(c, done.why)
	p.unlock()
	p.released(ctx, c, done.why)
}

// released reports that a session was given back; why isn't empty when it serves
// nobody else.
func (p *Pool) released(ctx context.Context, c *conn, why CloseReason) {
	if p.trace.SessionReleased != nil {
		p.trace.SessionReleased(ctx, SessionReleasedInfo{c.borrowedOrigin(), why})
	}
}

// replaced reports that a caller leaves a session for another.
func (p *Pool) replaced(ctx context.Context, old *conn, why CloseReason) {
	if p.trace.SessionReplaced != nil {
		p.trace.SessionReplaced(ctx, SessionReplacedInfo{old.origin(), why})
	}
}

// leaveLocked ends a borrow; why isn't empty when c must serve nobody else. The time is
// read under the lock, so that idle sessions are filed in order. The caller must hold
// p.mu.
func (p *Pool) leaveLocked(c *conn, why CloseReason) {
	p.state.Leave(c.st, nil, reason(why), p.now())
}

// countLocked counts a call that has ended. The caller must hold p.mu.
func (p *Pool) countLocked(c *conn, how outcome) {
	p.outcomes[how]++
	if how != outcomeNotSent {
		c.st.Called()
	}
}

// awaitUse waits until c is connected and the caller has its turn, and looks then
// whether c may still be used.
func (c *conn) awaitUse(b *borrower, w *turn.Place) error {
	select {
	case <-c.ready:
	default:
		if err := c.awaitPlace(b.ctx); err != nil {
			return err
		}
		if err := c.awaitConnect(b.ctx); err != nil {
			return err
		}
		if err := ask(b.check); err != nil {
			return err
		}
	}
	if c.connectErr != nil {
		return c.connectErr
	}
	if w != nil {
		if err := c.awaitTurn(b.ctx, w); err != nil {
			return err
		}
	}
	return c.usable(b)
}

// errTooLong becomes a BusyError for the caller.
var errTooLong = fmt.Errorf("%w: waited at a limit for as long as MaxWait allows", ErrBusy)

// awaitPlace waits at a limit, if c is queued.
func (c *conn) awaitPlace(ctx context.Context) (err error) {
	admitted := c.st.Admitted()
	if admitted == nil {
		return nil
	}
	select {
	case <-admitted:
		return c.st.Refusal()
	default:
	}
	defer func(end func(error) error) { err = end(err) }(c.wait(ctx, WaitLimit))
	var tooLong <-chan time.Time
	if d := c.pool.maxWaitNow(); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		tooLong = timer.C
	}
	select {
	case <-admitted:
		return c.st.Refusal()
	case <-c.st.Killed():
		return c.st.Cause()
	case <-c.pool.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-tooLong:
		return errTooLong
	}
}

func (p *Pool) maxWaitNow() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.maxWait
}

// awaitConnect waits for the connect. A close, the caller's ctx and the end of the
// connect may tie: the close wins over the connect in usable, and ctx over
// neither, since what it would waste is there.
func (c *conn) awaitConnect(ctx context.Context) (err error) {
	defer func(end func(error) error) { err = end(err) }(c.wait(ctx, WaitConnect))
	select {
	case <-c.ready:
		return c.connectErr
	case <-c.st.Killed():
		return c.st.Cause()
	case <-c.pool.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitTurn waits for the turn. A close wins when it ties; a turn that ties with
// the end of ctx is passed on by Leave. When the session is lost all who wait are
// sent on, in order.
func (c *conn) awaitTurn(ctx context.Context, w *turn.Place) (err error) {
	select {
	case <-w.Called():
	default:
		end := c.wait(ctx, WaitTurn)
		defer func() { err = end(err) }()
		for lost, called := c.st.Done(), false; !called; {
			select {
			case <-w.Called():
				called = true
			case <-c.st.Killed():
				return c.st.Cause()
			case <-lost:
				lost = nil
				c.pool.lost(c) // a custom client doesn't say so itself
			case <-c.pool.done:
				return ErrClosed
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if w.Moved() {
		return errStale
	}
	return nil
}

// usable looks at c right before it is used: by then it may have been killed,
// replaced or lost, and the caller may be late or its configuration changed.
func (c *conn) usable(b *borrower) error {
	switch {
	case c.st.Cause() != nil:
		return c.st.Cause()
	case c.st.Lost(): // before stale, which it makes it: deaths are counted
		return errDead
	case c.st.Stale():
		return errStale
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if c.suspect.Load() {
		if err := c.reassure(b.ctx); err != nil {
			return err
		}
	}
	return ask(b.check)
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

// reassure looks whether a suspect session answers. The caller borrows it and
// has its turn. When its own ctx ends meanwhile, the session stays suspect.
// Of those who share a concurrent session one looks, and the others go on.
func (c *conn) reassure(ctx context.Context) error {
	if !c.suspect.CompareAndSwap(true, false) {
		return nil
	}
	probe, cancel := context.WithTimeout(ctx, c.pool.opts.ProbeTimeout)
	defer cancel()
	err := c.safely("Client.Probe", func() error { return c.probe(probe) })
	switch {
	case c.st.Cause() != nil:
		return c.st.Cause()
	case c.st.Lost():
		return errDead
	case err == nil:
		return nil
	case ctx.Err() != nil:
		c.suspect.Store(true)
		return ctx.Err()
	default:
		return errWedged
	}
}

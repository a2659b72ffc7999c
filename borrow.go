package mcppool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// What sends a borrower on to a new session, since nothing was sent to this one.
var (
	errStale  = poolstate.ErrReplaced
	errDead   = errors.New("mcppool: session was lost before it was used")
	errWedged = errors.New("mcppool: session doesn't answer")
	errSent   = errors.New("mcppool: the borrower was sent on")
)

// borrower is a caller that wants a session. It holds the Server itself: a pointer
// beside ctx, which is kept for the connect, would send it to the heap on each call.
type borrower struct {
	ctx   context.Context
	srv   Server
	check func() bool
	want  poolstate.Want
	// giveUp is when it has waited at limits for too long; zero before it has waited.
	giveUp time.Time
}

// newBorrower is on the path of every call: for a configuration that is in use it
// allocates nothing.
func (p *Pool) newBorrower(ctx context.Context, srv *Server, scope string, check func() bool) borrower {
	is := identityOf(srv)
	return borrower{ctx: ctx, srv: *srv, check: check, want: poolstate.Want{
		Key: poolstate.Key{Server: p.known.Digest(&is), Scope: scope},
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
func (p *Pool) joinLocked(b *borrower) (*conn, *poolstate.Place, error) {
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
	if w != nil {
		w.Caller = b.ctx // for the connect of a session that replaces this one
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
func (p *Pool) await(b *borrower, c *conn, w *poolstate.Place, deaths int) (_ *conn, err error) {
	joined := true
	defer func() {
		if joined { // a func of the caller's ends the goroutine, as a test's FailNow does
			p.mu.Lock()
			defer p.unlock()
			p.state.Leave(c.st, w, reason(ReasonPanicked), p.now())
		}
	}()
	for {
		err = c.awaitUse(b, w)
		if w != nil && isClosed(w.Called()) {
			next, place, refused := p.proceed(b.ctx, c, w)
			switch {
			case refused != nil:
				joined = false
				return nil, p.refusal(b, refused)
			case next != c || place != nil:
				c, w = next, place // whatever became of c meanwhile
				continue
			}
			w = nil // it is b's turn
		}
		if err == nil {
			err = c.usable(b)
		}
		if err == nil {
			c.rootsChanged(b.ctx)
			if p.trace.SessionBorrowed != nil {
				p.trace.SessionBorrowed(b.ctx, SessionBorrowedInfo{c.borrowedOrigin()})
			}
			joined = false
			return c, nil
		}
		if err == errDead {
			deaths++
		}
		next, place, left := p.leaveFor(b, c, w, leaving{err, deaths})
		joined = left == nil
		if left != nil {
			return nil, p.refusal(b, left)
		}
		c, w = next, place
	}
}

// proceed returns what has become of a borrower whose place in the line for c was called.
func (p *Pool) proceed(ctx context.Context, c *conn, w *poolstate.Place) (*conn, *poolstate.Place, error) {
	p.mu.Lock()
	s, place, err := p.state.Proceed(w, p.now())
	if err == nil && s.Owner == nil {
		p.ownSuccessorLocked(s)
	}
	why := CloseReason(c.st.Reason())
	p.unlock()
	if err != nil {
		return nil, nil, err
	}
	switch why {
	case ReasonCrashed, ReasonWedged, ReasonStartFailed:
		if s != c.st {
			p.replaced(ctx, c, why)
		}
	}
	return connOf(s), place, nil
}

// leaving is why a borrower can't use the session that it waited for, and how many it
// has seen die.
type leaving struct {
	err    error
	deaths int
}

// leaveFor leaves c, and joins another session if that may serve b.
func (p *Pool) leaveFor(b *borrower, c *conn, w *poolstate.Place, l leaving) (next *conn, place *poolstate.Place, err error) {
	why := CloseReason("")
	err = l.err
	switch {
	case err == errDead:
		why = ReasonCrashed
		if l.deaths > 1 {
			err = c.lostError(errDead) // it dies faster than it can be used
		}
	case errors.Is(err, ErrServerClosed):
		why = ReasonServerClosed
	}
	p.mu.Lock()
	leave := p.state.Leave
	if b.want.Any {
		leave = p.state.LeaveVisit
		if why == ReasonServerClosed && !c.st.Visited() {
			why = "" // it is others'
		}
	}
	defer func() {
		p.unlock()
		if err == nil && why != "" {
			p.replaced(b.ctx, c, why)
		}
	}()
	if err == errTooLong {
		if c.st.Status() != poolstate.Queued {
			return c, w, nil // a grant or a close ties with the end of the wait, and wins
		}
		err = p.refusal(b, p.state.BusyFor(c.st))
	}
	leave(c.st, w, reason(why), p.now())
	if err == errStale || err == errDead {
		// Under the same lock, so that no close of the server can pass
		// between the old session and the new one unseen.
		return p.joinLocked(b)
	}
	return nil, nil, err
}

// ownSuccessorLocked makes the conn of a session that the state began by itself: a
// spare, or one in the place of another, for the first of those who waited for that. The
// caller must hold p.mu.
func (p *Pool) ownSuccessorLocked(s *poolstate.Session) {
	ctx, ok := s.Caller.(context.Context)
	if !ok {
		ctx = context.Background()
	}
	s.Caller = nil // its values are for the connect alone
	p.ownLocked(s, &recordOf(s.Group).srv, ctx)
}

// awaitUse waits until c is connected and the caller has its turn. It returns errSent
// when that was sent to another session.
func (c *conn) awaitUse(b *borrower, w *poolstate.Place) error {
	select {
	case <-c.ready:
	default:
		if err := c.awaitPlace(b, w); err != nil {
			return err
		}
		if err := c.awaitConnect(b.ctx, w); err != nil {
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
		return c.awaitTurn(b.ctx, w)
	}
	return nil
}

// errTooLong becomes a BusyError for the caller.
var errTooLong = fmt.Errorf("%w: waited at a limit for as long as MaxWait allows", ErrBusy)

// awaitPlace waits at a limit, if c is queued.
func (c *conn) awaitPlace(b *borrower, w *poolstate.Place) (err error) {
	admitted := c.st.Admitted()
	if admitted == nil {
		return nil
	}
	select {
	case <-admitted:
		return c.st.Refusal()
	default:
	}
	defer func(end func(error) error) { err = end(err) }(c.wait(b.ctx, WaitLimit))
	var tooLong <-chan time.Time
	if d := c.pool.Limits().MaxWait; d > 0 {
		if b.giveUp.IsZero() {
			b.giveUp = time.Now().Add(d)
		}
		timer := time.NewTimer(time.Until(b.giveUp))
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
	case <-calledTo(w):
		if w.Sent() {
			return errSent
		}
		return nil // it is connected already
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-tooLong:
		return errTooLong
	}
}

// awaitConnect waits for the connect. A close, the caller's ctx and the end of the
// connect may tie: the close wins over the connect in usable, and ctx over
// neither, since what it would waste is there.
func (c *conn) awaitConnect(ctx context.Context, w *poolstate.Place) (err error) {
	defer func(end func(error) error) { err = end(err) }(c.wait(ctx, WaitConnect))
	for called := calledTo(w); ; {
		select {
		case <-c.ready:
			return c.connectErr
		case <-called:
			if w.Sent() {
				return errSent
			}
			called = nil // its turn, and the connect is as good as over
		case <-c.st.Killed():
			return c.st.Cause()
		case <-c.pool.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitTurn waits for the turn. A close wins when it ties; a turn that ties with
// the end of ctx is passed on by Leave. When the session is lost all who wait are
// sent on, in order.
func (c *conn) awaitTurn(ctx context.Context, w *poolstate.Place) (err error) {
	if isClosed(w.Called()) {
		return nil
	}
	defer func(end func(error) error) { err = end(err) }(c.wait(ctx, WaitTurn))
	for lost := c.st.Done(); ; {
		select {
		case <-w.Called():
			if w.Sent() {
				return errSent
			}
			return nil
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

// calledTo is closed when w is called; it never is without a place.
func calledTo(w *poolstate.Place) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Called()
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
	return ask(b.check)
}

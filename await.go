package mcppool

import (
	"context"
	"fmt"
	"time"

	"github.com/mcppool/mcppool/internal/poolstate"
)

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
	if d := c.pool.maxWaitNow(); d > 0 {
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

func (p *Pool) maxWaitNow() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.maxWait
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

package mcppool

import (
	"context"
	"errors"
)

// A session in doubt is asked whether it answers by a goroutine of the pool, which
// begins at once, and whose time counts from then, whoever needs the session meanwhile.

// doubt is one such question. over is closed when it has its answer.
type doubt struct{ over chan struct{} }

// doubtIt has c asked whether it answers, since a call of it was given up.
func (c *conn) doubtIt() {
	c.pool.mu.Lock()
	defer c.pool.unlock()
	c.pool.state.Doubt(c.st)
}

// beginProbeLocked lets leases of c wait for the outcome. The caller must hold
// c.pool.mu.
func (c *conn) beginProbeLocked() { c.doubt.Store(&doubt{over: make(chan struct{})}) }

// probe asks whether c answers, and has it replaced if it doesn't.
func (p *Pool) probe(c *conn) {
	ctx, cancel := context.WithTimeout(p.life, p.opts.ProbeTimeout)
	defer cancel()
	err := c.safely("Client.Probe", func() error { return c.ask(ctx) })
	p.mu.Lock()
	switch {
	case c.st.Lost():
		p.state.Lost(c.st, p.now())
	case err == nil, p.life.Err() != nil: // the end of the pool says nothing of the server
		p.state.Answered(c.st)
	default:
		p.state.Wedged(c.st, c.lostError(errWedged), p.now())
	}
	d := c.doubt.Swap(nil)
	p.unlock()
	close(d.over)
}

// awaitAnswer waits until c isn't in doubt any more.
func (c *conn) awaitAnswer(ctx context.Context) error {
	d := c.doubt.Load()
	if d == nil {
		return nil
	}
	select {
	case <-d.over:
	case <-c.st.Killed():
	case <-ctx.Done():
		if !c.endedByLoss(ctx) {
			return ctx.Err()
		}
	}
	switch {
	case c.st.Cause() != nil:
		return c.st.Cause()
	case c.st.Lost():
		return c.lostError(errDead)
	default:
		return nil
	}
}

// wasLost reports whether the session was lost by itself, or found not to answer.
func (c *conn) wasLost() bool {
	if cause := c.st.Cause(); cause != nil {
		return errors.Is(cause, ErrSessionLost)
	}
	return c.st.Lost()
}

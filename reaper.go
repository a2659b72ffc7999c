package mcppool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// What is periodic. The reaper closes idle sessions when their time is up: one
// goroutine, which starts with the first session that can expire, sleeps until the
// next expiry, and ends with the pool. Another looks at health, a third at memory, if
// that was asked for.

// startReaperLocked starts the reaper, once. The caller must hold p.mu.
func (p *Pool) startReaperLocked() {
	if !p.reaping {
		p.reaping = true
		p.wg.Add(1)
		go p.reap()
	}
}

func (p *Pool) reap() {
	defer p.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.mu.Lock()
		now := p.now()
		next := p.state.Expire(now)
		p.unlock()

		var expiry <-chan time.Time
		if next != 0 {
			timer.Reset(next - now)
			expiry = timer.C
		}
		select {
		case <-expiry:
		case <-p.wake:
		case <-p.done:
			return
		}
	}
}

// rssInterval is how often memory is looked at. A variable for the tests alone.
var rssInterval = 10 * time.Second

// watchLocked starts the goroutines that look at sessions from time to time, when
// there is something to look for. The caller must hold p.mu.
func (p *Pool) watchLocked() {
	if p.watching {
		return
	}
	p.watching = true
	if d := p.opts.HealthInterval; d > 0 {
		p.wg.Add(1)
		go p.every(d, p.checkHealth)
	}
	if p.opts.Recycle.MaxRSS > 0 {
		p.wg.Add(1)
		go p.every(rssInterval, p.checkMemory)
	}
}

// every runs f in intervals until the pool is closed, which ends its ctx.
func (p *Pool) every(d time.Duration, f func(ctx context.Context)) {
	defer p.wg.Done()
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			f(p.life)
		}
	}
}

// maxProbes bounds how many idle sessions are checked at a time.
const maxProbes = 8

// checkHealth asks the idle sessions and the spares whether they answer, and closes
// those that don't. Each is kept from its callers only while it is asked, and left alone
// if it was used since the round began.
func (p *Pool) checkHealth(ctx context.Context) {
	p.mu.Lock()
	began := p.now()
	idle := slices.AppendSeq([]*poolstate.Session(nil), p.state.Idle)
	p.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxProbes)
	for _, s := range idle {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }() // whatever the client does
			p.checkOne(s, began)
		})
	}
	wg.Wait()
}

func (p *Pool) checkOne(s *poolstate.Session, began moment) {
	p.mu.Lock()
	inspected := p.state.Inspect(s, began)
	if inspected {
		connOf(s).beginProbeLocked()
	}
	p.mu.Unlock()
	if inspected {
		p.probe(connOf(s))
	}
}

// checkMemory marks the sessions whose process trees use too much.
func (p *Pool) checkMemory(ctx context.Context) {
	p.mu.Lock()
	var live []*poolstate.Session
	for s := range p.state.All {
		if s.Status() == poolstate.Live && !s.IsHeavy() {
			live = append(live, s)
		}
	}
	p.mu.Unlock()
	sizes := sizesOf(live)
	if ctx.Err() != nil {
		return
	}
	for i, s := range live {
		if sizes[i] > p.opts.Recycle.MaxRSS {
			p.mu.Lock()
			p.state.Heavy(s, p.now())
			p.unlock()
		}
	}
}

// sizesOf is the memory of sessions' process trees, 0 where it isn't known. Those of
// the default client are looked at together.
func sizesOf(live []*poolstate.Session) []int64 {
	sizes := make([]int64, len(live))
	var (
		children []*mcpconn.Conn
		at       []int // their indices in live
	)
	for i, s := range live {
		switch c := connOf(s).client.(type) {
		case *defaultClient:
			if child, ok := c.Conn.(*mcpconn.Conn); ok {
				children, at = append(children, child), append(at, i)
			}
		case interface{ RSS() (bytes int64, ok bool) }:
			_ = connOf(s).safely("Client.RSS", func() error {
				if bytes, ok := c.RSS(); ok {
					sizes[i] = bytes
				}
				return nil
			})
		}
	}
	for k, bytes := range mcpconn.RSSOf(children) {
		sizes[at[k]] = bytes
	}
	return sizes
}

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
	err := errGoexit // unless the client returns
	defer func() { p.probed(c, err) }()
	err = c.safely("Client.Probe", func() error { return c.ask(ctx) })
}

// probed takes note of what came of a probe.
func (p *Pool) probed(c *conn, err error) {
	var wedged error
	if err != nil {
		wedged = c.lostError(errWedged) // which asks the client, and so not under the lock
	}
	p.mu.Lock()
	switch {
	case c.st.Lost():
		p.state.Lost(c.st, p.now())
	case err == nil, p.life.Err() != nil: // the end of the pool says nothing of the server
		p.state.Answered(c.st)
	default:
		p.state.Wedged(c.st, wedged, p.now())
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

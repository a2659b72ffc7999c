package mcppool

import (
	"context"
	"sync"
	"time"
)

// rssInterval is how often memory is looked at. A variable for the tests alone.
var rssInterval = 10 * time.Second

// watchLocked starts the goroutine that looks at sessions from time to time, when
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

// checkHealth looks whether the idle sessions answer, and closes those that
// don't. It borrows them for it without making them look used.
func (p *Pool) checkHealth(ctx context.Context) {
	p.mu.Lock()
	var idle []*session
	for s := range p.idle.All {
		idle = append(idle, s)
	}
	for _, s := range idle {
		s.inFlight++
		s.turns.Take() // nobody has it
		p.idle.Remove(&s.idle)
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxProbes)
	for _, s := range idle {
		slots <- struct{}{}
		wg.Go(func() {
			p.checkOne(ctx, s)
			<-slots
		})
	}
	wg.Wait()
}

func (p *Pool) checkOne(ctx context.Context, s *session) {
	why := CloseReason("")
	s.suspect.Store(true)
	switch err := s.reassure(ctx); err {
	case errWedged:
		why = CloseWedged
	case errDead:
		why = CloseCrashed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(s, nil, why, 0)
}

// checkMemory marks the sessions whose process trees use too much.
func (p *Pool) checkMemory(ctx context.Context) {
	p.mu.Lock()
	var live []*session
	for _, g := range p.servers {
		for s := range g.members {
			if s.state == stateLive && !s.heavy {
				live = append(live, s)
			}
		}
	}
	p.mu.Unlock()
	for _, s := range live {
		c, ok := s.client.(interface{ RSS() (bytes int64, ok bool) })
		if !ok || ctx.Err() != nil {
			continue
		}
		bytes, ok := c.RSS()
		if !ok || bytes <= p.opts.Recycle.MaxRSS {
			continue
		}
		p.mu.Lock()
		s.heavy = true
		if s.linked && s.inFlight == 0 && s.state == stateLive {
			p.recycleLocked(s, true)
		}
		p.mu.Unlock()
	}
}

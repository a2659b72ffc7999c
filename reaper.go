package mcppool

import (
	"time"

	"github.com/mcppool/mcppool/internal/idle"
)

// reaper closes idle sessions when their time is up. It is one goroutine, which
// starts with the first session that can expire, sleeps until the next expiry,
// and ends with the pool.
type reaper struct {
	started bool
	// wakes is when the goroutine looks next; zero when it waits to be woken.
	// Sessions that become idle expire later than those that did before, so that
	// a busy pool's calls wake it about once in an IdleTimeout.
	wakes moment
	wake  chan struct{} // capacity 1
}

// expiresLocked sees to it that the reaper looks at the time at. The caller
// must hold p.mu.
func (p *Pool) expiresLocked(at moment) {
	r := &p.reaper
	if r.wakes != 0 && at >= r.wakes {
		return
	}
	r.wakes = at
	if !r.started {
		r.started = true
		p.wg.Add(1)
		go p.reap()
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (p *Pool) reap() {
	defer p.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.mu.Lock()
		now := p.now()
		next := p.expireLocked(&p.idle, now)
		if spare := p.expireLocked(&p.spares, now); next == 0 || spare != 0 && spare < next {
			next = spare
		}
		p.reaper.wakes = next
		p.mu.Unlock()

		var expiry <-chan time.Time
		if next != 0 {
			timer.Reset(next - now)
			expiry = timer.C
		}
		select {
		case <-expiry:
		case <-p.reaper.wake:
		case <-p.done:
			return
		}
	}
}

// expireLocked closes what has expired in a list, and gives when the next one
// does, or zero. The caller must hold p.mu.
func (p *Pool) expireLocked(list *idle.Lists[*session], now moment) moment {
	e, next := list.Expired(now)
	for e != nil {
		p.unlinkLocked(e.Value, CloseIdle)
		e, next = list.Expired(now)
	}
	return next
}

package mcppool

import (
	"errors"
	"time"

	"github.com/mcppool/mcppool/internal/backoff"
)

// Backoff holds off a server that keeps failing to start, or dies soon after,
// whichever scope asks for it. Failed tools, timeouts and cancellations never
// count. While it lasts, calls that would have to start the server fail at once
// with a [*StartError] that says why and until when; then one attempt is made at
// a time, until one comes up. A server is trusted again, and its failures are
// forgotten, when a session has lived for MinUptime.
type Backoff struct {
	// After is how many failures in a row are let through; zero means that
	// nothing is ever held off.
	After int
	// Initial is the first pause, and doubles with each failure; default 500 ms.
	// Up to a quarter of a pause is taken off it at random.
	Initial time.Duration
	// Max bounds the pause; default 30 s.
	Max time.Duration
	// MinUptime is how long a session must live for its start to count as a
	// success; default 10 s.
	MinUptime time.Duration
}

func (b *Backoff) initial() time.Duration   { return orDefault(b.Initial, 500*time.Millisecond) }
func (b *Backoff) max() time.Duration       { return orDefault(b.Max, 30*time.Second) }
func (b *Backoff) minUptime() time.Duration { return orDefault(b.MinUptime, 10*time.Second) }

// maxBreakers bounds the memory of failing servers; beyond it one is forgotten.
const maxBreakers = 1024

func (b *Backoff) config() backoff.Config {
	return backoff.Config{Failures: b.After, Initial: b.initial(), Max: b.max(), MinUptime: b.minUptime(), Cap: maxBreakers}
}

// heldOffLocked is the error of a server that must not be started now, or nil.
// The caller must hold p.mu.
func (p *Pool) heldOffLocked(d digest, label string) error {
	if p.breakers.Len() == 0 {
		return nil
	}
	now := p.now()
	if p.breakers.Held(d, now) {
		p.trustLocked(d, label)
	}
	wait, reason := p.breakers.HeldOff(d, now)
	if wait <= 0 {
		return nil
	}
	err := &StartError{Server: label, Phase: "start", RetryAfter: wait, Err: reason}
	var (
		start *StartError
		lost  *LostError
	)
	switch {
	case errors.As(reason, &start):
		err.Phase, err.Exit, err.Stderr, err.Err = start.Phase, start.Exit, start.Stderr, start.Err
	case errors.As(reason, &lost):
		err.Exit, err.Stderr, err.Err = lost.Exit, lost.Stderr, lost.Err
	}
	return err
}

// tryLocked notes that s is started although its server may have failed before.
// The caller must hold p.mu.
func (p *Pool) tryLocked(s *session) {
	if s.attempt = p.breakers.Begin(s.key.server, p.now()); s.attempt.Trial() {
		p.breakerEvents = append(p.breakerEvents, breakerEvent{s.label, BreakerHalfOpen, 0})
	}
}

// startedLocked notes that the connect of s has ended, well or not; one that was
// given up (err is nil, up false) says nothing about the server. The caller must
// hold p.mu.
func (p *Pool) startedLocked(s *session, up bool, err error) {
	switch {
	case up:
		p.breakers.Up(&s.attempt, p.now())
	case err != nil && !isConfigError(err):
		p.failedLocked(s, p.breakers.Fail(&s.attempt, err, p.now()))
	default:
		p.breakers.GiveUp(&s.attempt)
	}
}

// diedLocked notes that the connection of s was lost. The caller must hold p.mu.
func (p *Pool) diedLocked(s *session) {
	if p.breakers.Held(s.key.server, p.now()) {
		p.trustLocked(s.key.server, s.label)
	}
	p.failedLocked(s, p.breakers.Died(&s.attempt, errDiedSoon, p.now()))
}

var errDiedSoon = errors.New("it died soon after it had started")

// failedLocked notes that the server of s is held off from now on, if pause isn't 0.
func (p *Pool) failedLocked(s *session, pause time.Duration) {
	if pause > 0 {
		p.breakerEvents = append(p.breakerEvents, breakerEvent{s.label, BreakerOpen, pause})
	}
}

// explainDeath replaces what is known of the death of s, once its client has
// been asked, which can't be done under the lock.
func (p *Pool) explainDeath(s *session) {
	if s.reason != CloseCrashed || p.opts.Backoff.After <= 0 {
		return
	}
	err := s.lostError(errDiedSoon)
	p.mu.Lock()
	p.breakers.Explain(s.key.server, errDiedSoon, err)
	p.mu.Unlock()
}

// trustLocked forgets the failures of a server. The caller must hold p.mu.
func (p *Pool) trustLocked(d digest, label string) {
	if p.breakers.Forget(d) {
		p.breakerEvents = append(p.breakerEvents, breakerEvent{label, BreakerClosed, 0})
	}
}

// breakerEvent is a change that has yet to be told of.
type breakerEvent struct {
	server string
	state  BreakerState
	pause  time.Duration
}

// tellBreaker tells of what has changed under the lock. Every change has a connect
// or a close right after it, which calls this.
func (p *Pool) tellBreaker() {
	p.mu.Lock()
	events := p.breakerEvents
	p.breakerEvents = nil
	p.mu.Unlock()
	for _, e := range events {
		p.logBreaker(e)
		if p.trace.BreakerChanged != nil {
			p.trace.BreakerChanged(e.server, e.state, e.pause)
		}
	}
}

// ResetServer forgets the failures of exactly this configuration, so that the
// next call may start it at once.
func (p *Pool) ResetServer(srv Server) {
	d := digestOf(&srv)
	p.mu.Lock()
	p.trustLocked(d, srv.base()+"-"+shortHex(d))
	p.mu.Unlock()
	p.tellBreaker()
}

func isConfigError(err error) bool {
	var config *ConfigError
	return errors.As(err, &config)
}

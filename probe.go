package mcppool

import (
	"context"
	"errors"
)

// AbandonPolicy says what becomes of a session whose call was given up: its ctx
// ended after the call was sent.
type AbandonPolicy uint8

const (
	// AbandonDefault is what the pool's options say, and there Discard.
	AbandonDefault AbandonPolicy = iota
	// Discard closes the session: nobody knows what state it is in.
	Discard
	// Probe keeps it. The server is told that the call was cancelled, and the
	// next borrower first looks whether the server answers, within its own
	// deadline and at most ProbeTimeout. If not, the session is replaced.
	Probe
)

// Prober is implemented by a [Client] that knows a cheap way to find out whether
// its server answers. An error means that it doesn't. Without it, a page of tools
// is asked for.
type Prober interface {
	Probe(ctx context.Context) error
}

// errWedged sends a borrower on to a new session.
var errWedged = errors.New("mcppool: session doesn't answer")

// abandonPolicy is what holds for s.
func (s *session) abandonPolicy() AbandonPolicy {
	if s.srv.AfterAbandon != AbandonDefault {
		return s.srv.AfterAbandon
	}
	return s.pool.opts.AfterAbandon
}

// reassure looks whether a suspect session answers. The caller borrows it and
// has its turn. When its own ctx ends meanwhile, the session stays suspect.
// Of those who share a concurrent session one looks, and the others go on.
func (s *session) reassure(ctx context.Context) error {
	if !s.suspect.CompareAndSwap(true, false) {
		return nil
	}
	probe, cancel := context.WithTimeout(ctx, s.pool.opts.probeTimeout())
	defer cancel()
	err := s.probeSafely(probe)
	switch {
	case s.isKilled():
		return s.cause
	case s.isLost():
		return errDead
	case err == nil:
		return nil
	case ctx.Err() != nil:
		s.suspect.Store(true)
		return ctx.Err()
	default:
		return errWedged
	}
}

// probeSafely takes a probe that panics for no answer: the caller may be a
// goroutine of the pool, and holds the session.
func (s *session) probeSafely(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("the probe panicked: " + panicText(v))
		}
	}()
	return s.probe(ctx)
}

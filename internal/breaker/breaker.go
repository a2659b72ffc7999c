// Package breaker says which of many things that fail may be tried now. It holds
// a thing off after failures in a row, for pauses that double, then lets one trial
// through at a time, and trusts it again once a trial has held long enough.
//
// It has no clock of its own: times are durations since whatever moment the owner
// chose, and positive. A Set is not safe for concurrent use; its owner's lock
// protects it.
package breaker

import (
	"math/rand/v2"
	"time"
)

// Config is how a Set behaves.
type Config struct {
	After     int           // failures in a row that are let through; 0 turns everything off
	Initial   time.Duration // the first pause, less up to a quarter at random
	Max       time.Duration // of a pause
	MinUptime time.Duration // how long a trial must hold
	Cap       int           // things remembered; beyond it any one is forgotten
}

// Set is what is known of the things that failed lately.
type Set[K comparable] struct {
	Config
	failing map[K]*state
}

type state struct {
	failures int
	until    time.Duration // no trial before
	trying   bool          // one is under way
	up       time.Duration // since when a trial has held; 0 when none has
	reason   error         // of the last failure
}

// Len is how many things are remembered.
func (s *Set[K]) Len() int { return len(s.failing) }

// HeldOff is how long k is held off, with the reason of its last failure; 0 means
// that it may be tried.
func (s *Set[K]) HeldOff(k K, now time.Duration) (wait time.Duration, reason error) {
	b := s.failing[k]
	switch {
	case b == nil, b.failures < s.After:
		return 0, nil
	case b.trying:
		return s.Initial, b.reason
	default:
		return max(b.until-now, 0), b.reason
	}
}

// Held reports whether a trial of k has held long enough, so that it is to be
// trusted.
func (s *Set[K]) Held(k K, now time.Duration) bool {
	b := s.failing[k]
	return b != nil && b.up != 0 && now-b.up >= s.MinUptime
}

// Try notes that k is tried; it reports whether that is a trial, of something that
// was held off.
func (s *Set[K]) Try(k K) (trial bool) {
	b := s.failing[k]
	if b == nil || b.failures < s.After || b.up != 0 {
		return false
	}
	b.trying = true
	return true
}

// GiveUp ends a trial that has said nothing.
func (s *Set[K]) GiveUp(k K) {
	if b := s.failing[k]; b != nil {
		b.trying = false
	}
}

// Up notes that k came up.
func (s *Set[K]) Up(k K, now time.Duration) {
	if b := s.failing[k]; b != nil {
		b.trying, b.up = false, now
	}
}

// Fail notes a failure; pause is how long k is held off from now on, or 0.
func (s *Set[K]) Fail(k K, reason error, now time.Duration) (pause time.Duration) {
	if s.After <= 0 {
		return 0
	}
	b := s.failing[k]
	if b == nil {
		if s.failing == nil {
			s.failing = make(map[K]*state)
		}
		if len(s.failing) >= s.Cap {
			for any := range s.failing {
				delete(s.failing, any)
				break
			}
		}
		b = &state{}
		s.failing[k] = b
	}
	b.failures++
	b.up, b.trying, b.reason = 0, false, reason
	over := b.failures - s.After
	if over < 0 {
		return 0
	}
	pause = s.Max
	if over < 62 && s.Initial <= s.Max>>over { // else the shift may overflow
		pause = s.Initial << over
	}
	pause -= rand.N(pause/4 + 1)
	b.until = now + pause
	return pause
}

// Explain replaces the reason of the last failure, if it is still the one given.
func (s *Set[K]) Explain(k K, was, is error) {
	if b := s.failing[k]; b != nil && b.reason == was {
		b.reason = is
	}
}

// Forget starts k afresh; it reports whether it had been held off.
func (s *Set[K]) Forget(k K) (wasHeldOff bool) {
	b := s.failing[k]
	delete(s.failing, k)
	return b != nil && b.failures >= s.After
}

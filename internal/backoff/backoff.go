// Package backoff says which of many things that fail to start may be started now. A
// thing that fails several times in a row is held off, for pauses that double, and then
// tried once at a time until a start comes up. The rules:
//
//   - A failure is an attempt that doesn't come up, or one that came up and died
//     within MinUptime. An attempt that is given up is neither failure nor success.
//   - A success is an attempt that came up and hasn't died within MinUptime, whatever
//     others did meanwhile. It is known when MinUptime is over, and ends the row.
//     One that is ended in good order before that isn't reported, and succeeds too.
//   - With Failures in a row the thing is held off: nothing is to be started before the
//     pause is over, then one attempt is, the trial. When it is given up another one may
//     follow at once; when it fails the next pause begins, twice as long.
//   - An attempt that comes up, be it the trial or not, ends that at once: others may
//     be started. Should one of those fail before a success, the next pause begins.
//   - A burst counts once: an attempt that began before the newest pause did adds
//     nothing to it when it fails, and neither prolongs that pause nor begins another.
//     It doesn't end a trial either.
//   - A success that becomes known while a thing is held off doesn't end that: it began
//     before the failures did.
//
// The package has no clock of its own: times are durations since whatever moment the
// owner chose, positive, and never decrease from call to call. A Set is not safe for
// concurrent use; its owner's lock protects it.
package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/mcppool/mcppool/internal/list"
)

// Config is how a Set behaves.
type Config struct {
	Failures  int           // in a row with which a thing is held off; 0 turns everything off
	Initial   time.Duration // the first pause, less up to a quarter at random
	Max       time.Duration // of a pause
	MinUptime time.Duration // how long a success lives
	Cap       int           // things remembered; beyond it any one is forgotten
}

// Set is what is known of the things that failed lately.
type Set[K comparable] struct {
	Config
	failing map[K]*state
	young   list.List[*life[K]]                      // those that came up within MinUptime, the oldest first
	last    uint64                                   // number of the last attempt
	random  func(atMost time.Duration) time.Duration // nil for any
}

// state is what is known of one thing since its last success.
type state struct {
	failures int
	reason   error // of the last one
	trusted  bool  // there was a success since

	heldOff bool
	paused  time.Duration // when the newest pause began
	until   time.Duration // when it ends
	trial   uint64        // number of the attempt that is the trial; 0 for none
}

// life is an attempt that came up.
type life[K comparable] struct {
	key  K
	up   time.Duration
	node list.Node[*life[K]] // in Set.young
}

// Attempt is one start of a thing. Begin returns it, and then Up, Fail or GiveUp is
// called with it, once; after Up Died may be.
type Attempt[K comparable] struct {
	key    K
	number uint64 // 0 where everything is off
	began  time.Duration
	trial  bool
	life   *life[K] // set by Up
}

// Trial reports that the thing was held off when the attempt began.
func (a *Attempt[K]) Trial() bool { return a.trial }

// Len returns how many things are remembered for their failures.
func (s *Set[K]) Len() int { return len(s.failing) }

// HeldOff returns for how long k is held off, with the reason of its last failure; 0
// means that it may be started. While a trial is under way it is Initial, as nobody
// knows.
func (s *Set[K]) HeldOff(k K, now time.Duration) (wait time.Duration, reason error) {
	st := s.failing[k]
	switch {
	case st == nil || !st.heldOff:
		return 0, nil
	case st.trial != 0:
		return s.Initial, st.reason
	}
	return max(st.until-now, 0), st.reason
}

// Held reports that k has had a success since its last failure, so that it is to be
// forgotten. A failure forgets it otherwise.
func (s *Set[K]) Held(k K, now time.Duration) bool {
	s.mature(now)
	st := s.failing[k]
	return st != nil && st.trusted
}

// Begin notes that k is started, which HeldOff allows.
func (s *Set[K]) Begin(k K, now time.Duration) Attempt[K] {
	if s.Failures <= 0 {
		return Attempt[K]{}
	}
	s.last++
	a := Attempt[K]{key: k, number: s.last, began: now}
	if st := s.failing[k]; st != nil && st.heldOff && st.trial == 0 {
		a.trial, st.trial = true, a.number
	}
	return a
}

// GiveUp notes that the attempt ended and says nothing about the thing.
func (s *Set[K]) GiveUp(a *Attempt[K]) { s.endTrial(a) }

// endTrial returns what is known of the attempt's thing, whose trial a is no more.
func (s *Set[K]) endTrial(a *Attempt[K]) *state {
	st := s.failing[a.key]
	if st != nil && a.number != 0 && st.trial == a.number {
		st.trial = 0
	}
	return st
}

// Up notes that the attempt came up.
func (s *Set[K]) Up(a *Attempt[K], now time.Duration) {
	if a.number == 0 {
		return
	}
	s.mature(now)
	if st := s.failing[a.key]; st != nil {
		st.heldOff, st.trial = false, 0
	}
	a.life = &life[K]{key: a.key, up: now}
	a.life.node.Value = a.life
	s.young.PushBack(&a.life.node)
}

// Died notes that what came up has died by itself. It is a failure if it lived for less
// than MinUptime; pause is as for Fail.
func (s *Set[K]) Died(a *Attempt[K], reason error, now time.Duration) (pause time.Duration) {
	s.mature(now)
	if a.life == nil || !s.young.Remove(&a.life.node) {
		return 0
	}
	return s.Fail(a, reason, now)
}

// Fail notes that the attempt failed; pause is for how long its thing is held off from
// now on, or 0 if that doesn't change.
func (s *Set[K]) Fail(a *Attempt[K], reason error, now time.Duration) (pause time.Duration) {
	if a.number == 0 {
		return 0
	}
	s.mature(now)
	st := s.endTrial(a)
	if st == nil || st.trusted {
		st = s.remember(a.key)
	}
	st.reason = reason
	if st.failures >= s.Failures && a.began <= st.paused {
		return 0
	}
	st.failures++
	if st.failures < s.Failures {
		return 0
	}
	pause = s.pause(st.failures - s.Failures)
	// An attempt that is still under way began before this pause: it isn't its trial.
	st.heldOff, st.trial = true, 0
	st.paused, st.until = now, now+pause
	return pause
}

// remember starts k afresh.
func (s *Set[K]) remember(k K) *state {
	if s.failing == nil {
		s.failing = make(map[K]*state)
	}
	if _, known := s.failing[k]; !known && len(s.failing) >= s.Cap {
		for any := range s.failing {
			delete(s.failing, any)
			break
		}
	}
	st := &state{}
	s.failing[k] = st
	return st
}

// pause returns the pause after the first one was doubled some times.
func (s *Set[K]) pause(doubled int) time.Duration {
	pause := s.Max
	if doubled < 62 && s.Initial <= s.Max>>doubled { // else the shift may overflow
		pause = s.Initial << doubled
	}
	if s.random != nil {
		return pause - s.random(pause/4)
	}
	return pause - rand.N(pause/4+1)
}

// mature counts the successes that are known by now.
func (s *Set[K]) mature(now time.Duration) {
	for n := s.young.Front(); n != nil && now-n.Value.up >= s.MinUptime; n = s.young.Front() {
		s.young.Remove(n)
		if st := s.failing[n.Value.key]; st != nil && !st.heldOff {
			st.trusted = true
		}
	}
}

// Explain replaces the reason of the last failure, if it is still the one given.
func (s *Set[K]) Explain(k K, was, is error) {
	if st := s.failing[k]; st != nil && st.reason == was {
		st.reason = is
	}
}

// Forget starts k afresh; it reports whether k had failed often enough to be held off.
func (s *Set[K]) Forget(k K) (wasHeldOff bool) {
	st := s.failing[k]
	delete(s.failing, k)
	return st != nil && st.failures >= s.Failures
}

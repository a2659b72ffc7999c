package poolstate

import (
	"errors"
	"time"
)

// HeldOffError is the refusal to start a server that keeps failing.
type HeldOffError struct {
	Wait   time.Duration
	Reason error // of the last failure
}

func (h *HeldOffError) Error() string { return "held off: " + h.Reason.Error() }

// ErrDiedSoon is the reason of a failure that was a death soon after the start; see
// [State.Explain].
var ErrDiedSoon = errors.New("it died soon after it had started")

// heldOff refuses a server that must not be started now.
func (st *State) heldOff(w *Want, now Moment) error {
	if st.backoff.Len() == 0 {
		return nil
	}
	if st.backoff.Held(w.Server, now) {
		st.ResetBackoff(w)
	}
	if wait, reason := st.backoff.HeldOff(w.Server, now); wait > 0 {
		return &HeldOffError{Wait: wait, Reason: reason}
	}
	return nil
}

// ResetBackoff forgets the failures of w's server.
func (st *State) ResetBackoff(w *Want) {
	if !st.backoff.Forget(w.Server) {
		return
	}
	label := w.Label
	if g := st.groups[w.Server]; g != nil {
		label = g.Label
	}
	st.actions = append(st.actions, Action{Do: Trust, Label: label})
}

// Failing is how many servers are remembered to have failed.
func (st *State) Failing() int { return st.backoff.Len() }

// died notes that the connection of s was lost.
func (st *State) died(s *Session, now Moment) {
	if st.backoff.Held(s.Key.Server, now) {
		st.ResetBackoff(&Want{Key: s.Key})
	}
	st.heldOffFor(s, st.backoff.Died(&s.attempt, ErrDiedSoon, now))
}

// heldOffFor reports that the server of s is held off from now on, if pause isn't 0.
func (st *State) heldOffFor(s *Session, pause time.Duration) {
	if pause > 0 {
		st.actions = append(st.actions, Action{Do: HoldOff, Session: s, Pause: pause})
	}
}

// Explain replaces what is known of the death of s by what its client knows, which
// can't be asked under the lock.
func (st *State) Explain(s *Session, err error) {
	if s.reason == Crashed {
		st.backoff.Explain(s.Key.Server, ErrDiedSoon, err)
	}
}

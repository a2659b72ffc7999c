// Package lease keeps what becomes of a thing that is lent to a holder, whose requests
// may overlap: when it goes back, whether it may serve others then, and from when on
// the holder can't use it any more.
package lease

import "sync"

// State is that of one lease. Its zero value is one that has begun. Its methods may be
// called from any goroutine.
type State struct {
	mu      sync.Mutex // protects the fields below
	ended   bool
	given   bool // back
	running int  // requests under way
	why     string
	over    chan struct{} // see Done; made by its first call
	err     error
}

// Begin notes that a request begins, which Finish follows. It reports false once the
// holder has ended the lease.
func (s *State) Begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.running++
	}
	return !s.ended
}

// Finish notes the end of a request. back reports whether the thing is to be given back
// now, and why, if not empty, why it must serve nobody else.
func (s *State) Finish() (back bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	back = s.ended && s.running == 0 && !s.given
	s.given = s.given || back
	return back, s.why
}

// End ends the lease, once; the holder's error is err from then on. The thing goes back
// when the last request has ended, which must not overlap the next holder's; or at once
// for a reason, since that ends what is under way.
func (s *State) End(why string, err error) (back bool, because string) { return s.end(why, err, false) }

// Drop is End for a reason that counts more than those that were spoilt for before.
func (s *State) Drop(why string, err error) (back bool, because string) { return s.end(why, err, true) }

func (s *State) end(why string, err error, counts bool) (back bool, because string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false, ""
	}
	s.ended = true
	s.given = s.running == 0 || why != ""
	if s.why == "" || counts {
		s.why = why
	}
	s.overLocked(err)
	return s.given, s.why
}

// Spoil notes that the thing must serve nobody else, nor the holder, and the error for
// him, if there is one.
func (s *State) Spoil(why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = why
	s.overLocked(err)
}

// Over notes that the holder can't use the thing any more, for a reason that isn't the
// lease's.
func (s *State) Over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overLocked(nil)
}

func (s *State) overLocked(err error) {
	if s.err == nil {
		s.err = err
	}
	if s.over != nil && !isClosed(s.over) {
		close(s.over)
	}
}

// Err is the first error of the lease, which may be nil though it is spoilt, and why it
// is; empty if it isn't.
func (s *State) Err() (err error, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err, s.why
}

// Done returns a channel that is closed when the holder can't use the thing any more. The
// first call calls watch, which has Over called when that is for other reasons than the
// lease's; it reports false when it is so already. The channel that it gets is the
// same.
func (s *State) Done(watch func(over <-chan struct{}) bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = make(chan struct{})
		if s.err != nil || s.why != "" || !watch(s.over) {
			close(s.over)
		}
	}
	return s.over
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

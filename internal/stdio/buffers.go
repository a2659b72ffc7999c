package stdio

import (
	"runtime"
	"sync"
	"time"
)

// These are used by the connections that are busy now. The garbage collector takes
// what nobody has used for a while.
var (
	sharedBuffers = sync.Pool{New: func() any { return new([sharedBuffer]byte) }}
	largeBuffers  sync.Pool // of *[]byte, of any size beyond a shared one's
	spare         spareBuffer
)

func sharedSlice() []byte { return sharedBuffers.Get().(*[sharedBuffer]byte)[:] }

// putBuffer gives a buffer back that came from a lineBuffer, unless it is nil.
func putBuffer(b []byte) {
	switch {
	case b == nil:
	case cap(b) == sharedBuffer:
		sharedBuffers.Put((*[sharedBuffer]byte)(b[:sharedBuffer]))
	default:
		if b = spare.put(b); b != nil {
			putLarge(b)
		}
	}
}

// putLarge is a function of its own since its argument goes to the heap.
func putLarge(b []byte) { largeBuffers.Put(&b) }

// largeBuffer returns a buffer of at least size bytes, and not of so many more that
// few large lines would have the small ones keep much.
func largeBuffer(size int) []byte {
	if b := spare.take(size); b != nil {
		return b
	}
	b, _ := largeBuffers.Get().(*[]byte)
	if b == nil || !fits(*b, size) {
		return make([]byte, size)
	}
	return (*b)[:size]
}

func fits(b []byte, size int) bool { return size <= cap(b) && cap(b) <= 4*size }

const (
	maxSpare  = 32 << 20
	spareTime = 10 * time.Second
)

// spareBuffer keeps one large buffer, which the next large result is read into. Large
// results make the garbage collector run so often that it would take each from a
// sync.Pool before its next use. Here it takes one that nobody has used for spareTime:
// there is no timer, which might outlive what it is for.
type spareBuffer struct {
	mu      sync.Mutex // protects the fields below
	buf     []byte     // nil for none
	since   time.Time  // when buf was put
	watched bool       // the garbage collector's next run calls collected
}

// put keeps the larger of b and what it has, and returns the other one, nil for none.
func (s *spareBuffer) put(b []byte) (other []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(b) > maxSpare || cap(b) <= cap(s.buf) {
		return b
	}
	other, s.buf, s.since = s.buf, b, time.Now()
	s.watchLocked()
	return other
}

// take returns a buffer of size bytes, or nil if what is kept doesn't fit.
func (s *spareBuffer) take(size int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fits(s.buf, size) {
		return nil
	}
	b := s.buf[:size]
	s.buf = nil
	return b
}

// watchLocked has collected called after the garbage collector's next run.
func (s *spareBuffer) watchLocked() {
	if s.watched {
		return
	}
	s.watched = true
	garbage := new([64]byte) // not so small that it would share its memory with others
	runtime.AddCleanup(garbage, (*spareBuffer).collected, s)
}

func (s *spareBuffer) collected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	if s.buf == nil {
		return
	}
	if time.Since(s.since) >= spareTime {
		s.buf = nil
		return
	}
	s.watchLocked()
}

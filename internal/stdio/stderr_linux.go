package stdio

import (
	"os"
	"sync"
)

const (
	stderrChunk = 32 << 10
	stderrPass  = 1 << 20 // bytes that one pass reads at most
)

var stderrBuffers = sync.Pool{New: func() any { return new([stderrChunk]byte) }}

// pass reads what is there now, and reports how much. The pipe's read lock
// makes passes exclude each other.
func (s *stderrDrain) pass() (total int, err error) {
	buf := stderrBuffers.Get().(*[stderrChunk]byte)
	defer stderrBuffers.Put(buf)
	raw := s.file.conn.Read(func(fd uintptr) bool {
		for total < stderrPass && err == nil {
			var n int
			n, err = readSome(fd, buf[:])
			s.take(buf[:n])
			total += n
		}
		return true
	})
	if raw != nil {
		err = os.ErrClosed
	}
	return total, err
}

package stdio

import (
	"bytes"
	"sync"
)

// tail keeps the last bytes of a stream.
type tail struct {
	size int

	mu  sync.Mutex // protects buf
	buf []byte     // at most size bytes, allocated when there is something to keep
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b = b[max(0, len(b)-t.size):]
	if over := len(t.buf) + len(b) - t.size; over > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
	t.buf = append(t.buf, b...)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// lineCutter cuts a stream into lines of at most maxStderrLine bytes; what is
// longer is dropped.
type lineCutter struct {
	part []byte // the line that isn't complete
}

const maxStderrLine = 4 << 10

// write calls emit with each line that b completes; the line is emit's own.
func (c *lineCutter) write(b []byte, emit func(line []byte)) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		whole := i >= 0
		if !whole {
			i = len(b)
		}
		c.part = append(c.part, cut(b[:i], maxStderrLine-len(c.part))...)
		if !whole {
			return
		}
		c.flush(emit)
		b = b[i+1:]
	}
}

// flush emits the line at hand, if there is any.
func (c *lineCutter) flush(emit func(line []byte)) {
	line := bytes.TrimRight(c.part, "\r")
	c.part = nil
	if len(line) > 0 {
		emit(line)
	}
}

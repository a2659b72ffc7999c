package stdio

import (
	"sync"

	"github.com/mcppool/mcppool/internal/await"
)

// stderrDrain reads stderr, always: a server that nobody listens to stops when
// the pipe is full.
//
// Where the platform can watch many pipes from one place, see readiness, an
// idle stderr has no goroutine. Elsewhere one waits in Read.
type stderrDrain struct {
	conn  *Conn
	file  rawFile
	tail  tail
	watch *watch // nil when a goroutine of its own reads
	ended chan struct{}
	work  sync.WaitGroup

	mu    sync.Mutex // protects lines
	lines lineCutter
}

func (s *stderrDrain) start(c *Conn) {
	s.conn = c
	s.file = newRawFile(c.proc.Stderr)
	s.tail.size = c.cfg.StderrTail
	s.ended = make(chan struct{})
	s.watch = watchReadable(s.file, func(w *watch) { s.work.Go(func() { s.readReady(w) }) })
	if s.watch == nil {
		s.work.Go(s.readAll)
	}
}

// readAll is for platforms without readiness.
func (s *stderrDrain) readAll() {
	defer close(s.ended)
	buf := make([]byte, smallBuffer)
	for {
		n, err := s.file.file.Read(buf)
		s.take(buf[:n])
		if err != nil {
			s.end()
			return
		}
	}
}

// readReady reads until the pipe is empty, and has itself called again when it
// is not.
func (s *stderrDrain) readReady(w *watch) {
	for {
		n, err := s.pass()
		switch {
		case err == errEmpty:
			w.again()
			return
		case err != nil || n == 0:
			s.end()
			return
		}
	}
}

// drain takes what the server has written so far; it is for the report of its
// end. Without readiness that is the other goroutine's to do, which reads to the
// end of the pipe: others may hold it open.
func (s *stderrDrain) drain() {
	if s.watch == nil {
		await.Closed(s.ended, reasonTime)
		return
	}
	_, _ = s.pass() // an error means that there is no more
	s.end()
}

func (s *stderrDrain) take(b []byte) {
	if len(b) == 0 {
		return
	}
	s.tail.write(b)
	if s.conn.cfg.OnStderr != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines.write(b, s.emit)
	}
}

// end tells the last line, which may lack its newline.
func (s *stderrDrain) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines.flush(s.emit)
}

func (s *stderrDrain) emit(line []byte) { s.conn.events.push(event{params: line}) }

// stop waits until nothing reads any more. The pipe is closed by then.
func (s *stderrDrain) stop() {
	if s.watch != nil {
		s.watch.stop()
	}
	s.work.Wait()
}

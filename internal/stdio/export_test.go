package stdio

import (
	"sync"

	"github.com/mcppool/mcppool/internal/proc"
)

// ExitOf returns how the server's process ended.
func ExitOf(c *Conn) proc.Exit { return c.proc.Exit() }

// LastID returns the id of the last request.
func LastID(c *Conn) int64 { return c.ids.Load() }

// Pending returns how many calls wait for an answer.
func Pending(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// Replies returns how many bytes are queued that nobody waits for.
func Replies(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.replies
}

// Writing reports that a write is under way.
func Writing(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.active
}

// Losing reports that a loss is known, declared or not.
func Losing(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason != nil
}

// HoldReader keeps the reader from handing over an answer, and returns what
// lets it go on.
func HoldReader(c *Conn) func() {
	c.mu.Lock()
	return sync.OnceFunc(c.mu.Unlock)
}

// WakeReader does what the loss of the connection does to the reader.
func WakeReader(c *Conn) { c.wakeReader() }

// Stdout returns the descriptor that the reader reads.
func Stdout(c *Conn) uintptr {
	var out uintptr
	_ = c.stdout.conn.Control(func(fd uintptr) { out = fd })
	return out
}

// ReadByCallers reports that the reader has left the turn to the callers.
func ReadByCallers(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reader.turns.whose == nobodys
}

// BytesIn is how much of the server's stdout was read.
func BytesIn(c *Conn) int64 { return c.cfg.Traffic.In.Load() }

// FailedWriteIsNotSent reports whether a message is taken for not sent when the write
// that may have reached it fails, where the system's count of a failed write is exact
// or isn't.
func FailedWriteIsNotSent(exact bool) bool {
	defer func(old bool) { failedWriteIsExact = old }(failedWriteIsExact)
	failedWriteIsExact = exact
	c := &Conn{pending: make(map[int64]*outgoing)}
	o := &outgoing{id: 1, frame: []byte("x\n"), ready: make(chan struct{}, 1)}
	c.pending[1] = o
	c.out.pushLocked(o)
	c.out.takeLocked()
	c.written(0, false)
	return !c.out.withdrawLocked(o)
}

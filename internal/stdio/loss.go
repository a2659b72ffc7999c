package stdio

import (
	"maps"
	"slices"
	"time"

	"github.com/mcppool/mcppool/internal/await"
)

// Kill ends the connection and the process tree without grace and without
// waiting. Close is still to be called.
func (c *Conn) Kill() {
	c.lose(ErrKilled)
	c.proc.Kill()
}

// lose asks the reader to declare the connection lost. The first reason
// counts.
func (c *Conn) lose(reason error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	started := c.proc != nil // otherwise Start will see the reason
	c.mu.Unlock()
	if started {
		c.wakeReader()
	}
}

func (c *Conn) wakeReader() {
	if c.proc.Stdout.SetReadDeadline(longAgo) != nil {
		// Without deadlines only the end of the tree wakes the reader.
		c.proc.Kill()
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// conclude declares the connection lost after the reader has read its last.
func (c *Conn) conclude(cause error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = cause
	}
	reason := c.reason
	c.mu.Unlock()

	switch reason {
	case ErrEOF, ErrBrokenPipe, ErrExited:
		if await.Closed(c.proc.Exited(), reasonTime) {
			reason = ErrExited
		}
	}
	c.stderr.drain()
	dead := c.death(reason)
	if await.Closed(c.proc.Exited(), 0) {
		dead.Exited, dead.Exit = true, c.proc.Exit()
	}
	first := c.finish(dead)
	c.seal()
	c.proc.Drained()
	if !dead.Exited {
		c.proc.Kill()
	}
	if first && reason != ErrKilled && c.cfg.OnLost != nil {
		c.cfg.OnLost()
	}
}

func (c *Conn) death(reason error) *DeadError {
	return &DeadError{Reason: reason, StderrTail: c.StderrTail(), StdoutTail: c.StdoutTail()}
}

// finish fails all calls and closes Done. The first error counts, of which it
// returns true: a loss and a Close that tie are both true.
func (c *Conn) finish(dead *DeadError) bool {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return false
	}
	c.dead = dead
	failed := slices.Collect(maps.Values(c.pending))
	clear(c.pending)
	c.lasting = 0
	for _, o := range failed {
		o.err = dead
		if !c.out.withdrawLocked(o) {
			o.err = &NotSentError{Err: dead}
		}
	}
	c.mu.Unlock()

	close(c.done)
	c.cancel()
	for _, o := range failed {
		o.ready <- struct{}{}
	}
	return true
}

// seal ends all writing.
func (c *Conn) seal() {
	c.mu.Lock()
	c.sealed = true
	c.out.clearLocked()
	c.mu.Unlock()
	_ = c.proc.Stdin.SetWriteDeadline(longAgo) // an error tells that it is closed
}

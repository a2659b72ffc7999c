package stdio

import (
	"errors"
	"os"
	"time"
)

// How bytes go out. Whoever queues a message while nobody writes becomes the
// writer: it writes what the pipe takes at once and leaves. While it writes,
// others only queue their messages, and the writer takes these along. When the
// pipe is full, or others have queued for longer than is fair to the caller
// who writes, the job goes to a goroutine that lives until the queue is empty.
// So no caller ever blocks in a write.
//
// A message stays in the queue, where its caller may take it back, until its
// first byte is written. One that is half written is always finished, or the
// stream would be broken; the caller may leave all the same.

const (
	// maxBatch bounds what goes out in one write when there are many small
	// messages. Up to 4096 bytes (Linux; POSIX has PIPE_BUF) a pipe takes all or
	// nothing: so a small message is never half written, and can be taken back.
	maxBatch = 4096

	// callerTurns is how many writes a caller does before it leaves the job.
	callerTurns = 3

	// keptFrame bounds the buffers that are kept for reuse.
	keptFrame = 4 << 10
)

// flush is the writer's job in a caller: write what can be written at once.
func (c *Conn) flush(own *outgoing) {
	c.out.own = own
	for range callerTurns {
		switch c.tryWrite(own) {
		case wroteAll:
			continue
		case emptied:
			return
		case writeFail:
			c.writeFailed(c.out.failure)
			return
		}
		break
	}
	c.mu.Lock()
	c.pumpLocked()
	c.mu.Unlock()
}

// sendLocked queues a message on behalf of nobody who could write it.
func (c *Conn) sendLocked(frame []byte) {
	if c.sealed {
		return
	}
	c.out.replies += len(frame)
	if c.out.pushLocked(&outgoing{frame: frame, reply: true}) {
		c.pumpLocked()
	}
}

// pumpLocked gives the writer's job to pump.
func (c *Conn) pumpLocked() {
	c.out.own = nil
	if c.sealed {
		c.out.endLocked()
		return
	}
	c.work.Go(c.pump)
}

// pump is the writer's job in a goroutine of its own. As long as no message is
// half written it waits with patience for a server that doesn't read: callers
// take back what they queued.
func (c *Conn) pump() {
	for {
		var deadline time.Time
		if len(c.out.rest) > 0 {
			deadline = time.Now().Add(c.cfg.WriteStall)
		}
		if err := c.stdin.file.SetWriteDeadline(deadline); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			c.writeFailed(err)
			return
		}
		// The deadline of seal comes either after this one, or before this look.
		c.mu.Lock()
		sealed := c.sealed
		if sealed {
			c.out.endLocked()
		}
		c.mu.Unlock()
		if sealed {
			return
		}
		verdict, err := c.waitWrite()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.writeFailed(ErrStalled)
			return
		case err != nil:
			c.writeFailed(err)
			return
		case verdict == emptied:
			return
		case verdict == writeFail:
			c.writeFailed(c.out.failure)
			return
		}
	}
}

// writeFailed ends the writer's job for good.
func (c *Conn) writeFailed(err error) {
	if err != ErrStalled {
		err = ErrBrokenPipe
	}
	c.mu.Lock()
	c.sealed = true
	c.out.endLocked()
	c.mu.Unlock()
	c.lose(err)
}

// turn does one write. Only the writer may call it.
func (c *Conn) turn(fd uintptr) verdict {
	q := &c.out
	if len(q.rest) > 0 {
		n, err := c.writeSome(fd, q.rest)
		c.cfg.Traffic.Out.Add(int64(n))
		q.rest = q.rest[n:]
		switch {
		case err != nil:
			q.failure = err
			return writeFail
		case n == 0:
			return blocked
		case len(q.rest) > 0:
			return wroteAll // some of it
		}
		q.rest = nil
		return wroteAll
	}

	c.mu.Lock()
	// Once a loss is known nothing is sent, so that it may be sent elsewhere.
	if q.first == nil || c.sealed || c.reason != nil {
		q.endLocked()
		c.mu.Unlock()
		return emptied
	}
	gates := q.takeLocked()
	c.mu.Unlock()
	if len(q.batch) == 0 {
		return blocked // by a gate that isn't the caller's
	}
	if gates && !c.askGates() {
		return wroteAll
	}

	bytes := q.bytes()
	n, err := c.writeSome(fd, bytes)
	c.cfg.Traffic.Out.Add(int64(n))
	more := c.written(n, err == nil)
	if err != nil {
		q.failure = err
		return writeFail
	}
	return verdictOf(n, more)
}

// verdictOf says what a write came to that was fine. When there is no more the job is
// over, and may be another's by now, also where nothing was written: the callers of all
// that the full pipe didn't take have left.
func verdictOf(n int, more bool) verdict {
	switch {
	case !more:
		return emptied
	case n == 0:
		return blocked
	}
	return wroteAll
}

// bytes returns the batch in one piece.
func (q *writeQueue) bytes() []byte {
	if len(q.batch) == 1 {
		return q.batch[0].frame
	}
	q.joined = q.joined[:0]
	for _, o := range q.batch {
		q.joined = append(q.joined, o.frame...)
	}
	return q.joined
}

// written notes what became of the batch after n of its bytes were written.
// When nothing is left to write, and the write was fine, it ends the writer's
// job and reports that there is no more.
func (c *Conn) written(n int, fine bool) (more bool) {
	q := &c.out
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range q.batch {
		if n == 0 && !fine && !failedWriteIsExact {
			break // it may have gone out: whoever waits for it learns of the loss
		}
		if n == 0 {
			q.unshiftLocked(q.batch[i:])
			break
		}
		if o.reply {
			q.replies -= len(o.frame)
		}
		o.phase = phaseSent
		if n < len(o.frame) {
			// The bytes are the queue's now: the caller may be gone before they are.
			q.rest = o.frame[n:]
			o.frame = nil
			n = 0
		} else {
			n -= len(o.frame)
			if cap(o.frame) > keptFrame {
				o.frame = nil
			}
		}
		if o.tells {
			o.ready <- struct{}{}
		}
	}
	clear(q.batch)
	if q.first == nil && len(q.rest) == 0 && fine {
		q.endLocked()
		return false
	}
	return true
}

// askGates asks the gates of the batch and takes out what they refuse and what
// was taken back meanwhile. It reports whether something is left.
func (c *Conn) askGates() bool {
	q := &c.out
	for _, o := range q.batch {
		if o.gate != nil {
			o.no = c.askGate(o.gate)
		}
	}
	var failed []*outgoing
	c.mu.Lock()
	kept := q.batch[:0]
	for _, o := range q.batch {
		switch {
		case o.phase == phaseWriting:
			kept = append(kept, o)
		case o.phase == phaseGone:
		case o.phase != phaseGate:
			panic("bug: the phase of a message changed at its gate")
		case o.no == nil:
			o.phase = phaseWriting
			kept = append(kept, o)
		default:
			o.phase = phaseNone
			c.forgetLocked(o)
			o.err = &NotSentError{Err: o.no}
			o.reuse = true
			failed = append(failed, o)
		}
	}
	clear(q.batch[len(kept):])
	q.batch = kept
	c.mu.Unlock()
	for _, o := range failed {
		o.ready <- struct{}{}
	}
	return len(kept) > 0
}

// askGate asks one gate. One that panics refuses: the goroutine may be another
// caller's.
func (c *Conn) askGate(gate func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.handlerPanicked(v, nil)
			err = errGatePanicked
		}
	}()
	return gate()
}

var errGatePanicked = errors.New("the gate panicked")

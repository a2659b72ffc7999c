package stdio

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/mcppool/mcppool/internal/jsonscan"
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

// phase is how far a message has come. It changes under Conn.mu only.
type phase uint8

const (
	phaseNone    phase = iota // of a fresh one
	phaseQueued               // in the queue
	phaseGate                 // the writer asks its gate
	phaseWriting              // a write is under way that may or may not reach it
	phaseSent                 // at least its first byte was written
	phaseGone                 // its caller left while the writer had it
)

// outgoing is one message on its way to the server, and for a request also its
// place in the pending table.
type outgoing struct {
	frame []byte // with its newline
	kept  []byte // for small results
	gate  func() error
	no    error         // what the gate said; the writer's
	ready chan struct{} // holds one: the answer is there, or the message is out if it has none

	// These are the caller's once ready gives.
	result []byte // in kept, in shared, or its own
	long   jsonscan.Long
	rpcErr []byte
	err    error
	mark   uint64 // newest event at the arrival of the answer
	reuse  bool   // nobody else refers to this struct any more
	shared *[sharedBuffer]byte

	id         int64 // 0: no request
	tells      bool  // a message without answer whose sender waits until it is out
	reply      bool  // a message that nobody waits for
	unnoticed  bool  // its cancellation isn't told to the server
	lasting    bool  // a subscription: answered only at its end
	phase      phase
	prev, next *outgoing // in the queue

	// For its caller as the writer; not in writeQueue, since after the last turn
	// there may already be another writer.
	conn    *Conn
	try     func(fd uintptr) // does a turn; made once, as a func literal for each would be an allocation
	verdict verdict
}

// withdrawLocked takes a message back, if it can, and reports whether the
// server may have seen a part of it.
func (q *writeQueue) withdrawLocked(o *outgoing) (sent bool) {
	switch o.phase {
	case phaseQueued:
		q.removeLocked(o)
		o.phase = phaseNone
	case phaseGate:
		o.phase = phaseGone
	case phaseWriting:
		o.phase = phaseGone
		return true
	case phaseSent:
		return true
	case phaseGone: // the queue was cleared
	default:
		panic("bug: a message is withdrawn that isn't there")
	}
	return false
}

// begun reports that a write of the message has at least begun. The caller must
// hold Conn.mu.
func (o *outgoing) begun() bool { return o.phase == phaseWriting || o.phase == phaseSent }

// writeQueue is guarded by Conn.mu, but for the fields that are the writer's.
type writeQueue struct {
	first, last *outgoing
	replies     int           // bytes of what is queued and nobody waits for
	active      bool          // somebody is the writer
	idle        chan struct{} // closed when nobody is; nil unless a close waits for it

	// The writer's.
	own     *outgoing // of the caller who writes; nil in pump
	batch   []*outgoing
	joined  []byte // several small frames
	rest    []byte // of a half-written frame
	failure error
}

// verdict is what one turn of the writer came to.
type verdict uint8

const (
	wroteAll  verdict = iota // there may be more
	emptied                  // nothing was left; the caller is no longer the writer
	blocked                  // the pipe is full
	writeFail                // see failure
)

// pushLocked appends o; it reports that the caller has become the writer.
func (q *writeQueue) pushLocked(o *outgoing) bool {
	o.phase = phaseQueued
	o.prev = q.last
	if q.last == nil {
		q.first = o
	} else {
		q.last.next = o
	}
	q.last = o
	if q.active {
		return false
	}
	q.active = true
	return true
}

func (q *writeQueue) removeLocked(o *outgoing) {
	if o.prev == nil {
		q.first = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		q.last = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.prev, o.next = nil, nil
}

// unshiftLocked puts back what was taken and not begun, in its old order.
func (q *writeQueue) unshiftLocked(batch []*outgoing) {
	for _, o := range slices.Backward(batch) {
		if o.phase != phaseWriting {
			continue // its caller has left
		}
		o.phase = phaseQueued
		o.next = q.first
		if q.first == nil {
			q.last = o
		} else {
			q.first.prev = o
		}
		q.first = o
	}
}

func (q *writeQueue) clearLocked() {
	for q.first != nil {
		q.first.phase = phaseGone
		q.removeLocked(q.first)
	}
	q.replies = 0
}

// idleLocked returns a channel that is closed once nobody writes. Only Close
// calls it.
func (q *writeQueue) idleLocked() <-chan struct{} {
	idle := make(chan struct{})
	if q.active {
		q.idle = idle
	} else {
		close(idle)
	}
	return idle
}

// endLocked ends the writer's job.
func (q *writeQueue) endLocked() {
	q.active = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	if cap(q.joined) > keptFrame {
		q.joined = nil
	}
}

// takeLocked fills batch with what goes out in one write. A gate that is there
// is to be asked first, with the lock released. A caller who writes is spared
// the gates of others, which may be slow.
func (q *writeQueue) takeLocked() (gates bool) {
	q.batch = q.batch[:0]
	size := 0
	for o := q.first; o != nil && (size == 0 || size+len(o.frame) <= maxBatch); o = q.first {
		if o.gate != nil && q.own != nil && q.own != o {
			break
		}
		q.removeLocked(o)
		size += len(o.frame)
		o.phase = phaseWriting
		if o.gate != nil {
			o.phase = phaseGate
			gates = true
		}
		q.batch = append(q.batch, o)
	}
	return gates
}

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
	switch {
	case err != nil:
		q.failure = err
		return writeFail
	case n == 0:
		return blocked
	case !more:
		return emptied
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
			o.err = &NotSentError{o.no}
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

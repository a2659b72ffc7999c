package stdio

import (
	"slices"

	"github.com/mcppool/mcppool/internal/jsonscan"
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
	result []byte // in kept, in lent, or its own
	long   jsonscan.Long
	rpcErr []byte
	err    error
	mark   uint64 // newest event at the arrival of the answer
	reuse  bool   // nobody else refers to this struct any more
	lent   []byte // of the reader, nil for none

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

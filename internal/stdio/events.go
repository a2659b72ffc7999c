package stdio

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"sync"
)

const (
	maxEventBytes = 4 << 20
	eventOverhead = 128 // of one queued event, in bytes
)

// event is one call of a handler of the host.
type event struct {
	seq    uint64
	method string // of a notification; "" for a line of log
	params json.RawMessage
	junk   int // total so far, when the line is junk
}

func (e *event) size() int { return eventOverhead + len(e.method) + len(e.params) }

// eventQueue calls the host's handlers, one at a time and in order, on a
// goroutine of its own that exists only while there is something to deliver.
// It is bounded in bytes: what is over the bound is dropped, the oldest first,
// and what only informs (progress, log lines) before anything else.
type eventQueue struct {
	handle  func(event)
	onPanic func(v any, stack []byte)

	mu      sync.Mutex    // protects the fields below
	last    uint64        // seq of the newest event
	running uint64        // seq of the event in the handler, 0 when there is none
	lossy   []event       // progress and lines of log
	lasting []event       // everything else
	bytes   int           // of both
	dropped int64         // how many were
	closed  bool          // nothing is accepted or delivered any more
	moved   chan struct{} // closed at the next change; nil when nobody waits
	idle    chan struct{} // closed when the goroutine has ended; nil when it doesn't run
}

// lossyMethod reports that a notification is superseded by later ones.
func lossyMethod(method string) bool {
	switch method {
	case "", "notifications/progress", "notifications/message":
		return true
	}
	return false
}

// listChanged reports that a notification says nothing but "ask again": a
// second one that waits adds nothing, and one of them must arrive.
func listChanged(method string) bool {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/roots/list_changed":
		return true
	}
	return false
}

// push queues an event without blocking.
func (q *eventQueue) push(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.last++
	e.seq = q.last
	if lossyMethod(e.method) {
		q.lossy = append(q.lossy, e)
	} else {
		if listChanged(e.method) && q.waitingLocked(e.method) {
			return
		}
		q.lasting = append(q.lasting, e)
	}
	q.bytes += e.size()
	for q.bytes > maxEventBytes && q.dropLocked() {
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.deliver(q.idle)
	}
}

func (q *eventQueue) waitingLocked(method string) bool {
	for i := range q.lasting {
		if q.lasting[i].method == method {
			return true
		}
	}
	return false
}

// dropLocked drops the event that is missed least. A list_changed is never
// dropped; there are at most four of them.
func (q *eventQueue) dropLocked() bool {
	if len(q.lossy) > 0 {
		q.removeLocked(&q.lossy, 0)
		q.dropped++
		return true
	}
	for i := range q.lasting {
		if !listChanged(q.lasting[i].method) {
			q.removeLocked(&q.lasting, i)
			q.dropped++
			return true
		}
	}
	return false
}

func (q *eventQueue) removeLocked(list *[]event, i int) event {
	e := (*list)[i]
	q.bytes -= e.size()
	if i > 0 {
		copy((*list)[1:i+1], (*list)[:i])
	}
	(*list)[0] = event{}
	*list = (*list)[1:]
	if len(*list) == 0 {
		*list = nil
	}
	return e
}

// deliver runs the handlers until nothing is left, also after one that ends the
// goroutine.
func (q *eventQueue) deliver(idle chan struct{}) {
	over := false
	defer func() {
		if over {
			close(idle)
		} else {
			go q.deliver(idle)
		}
	}()
	for {
		e, ok := q.take()
		if over = !ok; over {
			return
		}
		q.call(e)
	}
}

// take ends the event at hand and returns the next one. When there is none the
// goroutine counts as ended.
func (q *eventQueue) take() (event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = 0
	if q.moved != nil {
		close(q.moved)
		q.moved = nil
	}
	var from *[]event
	switch {
	case q.closed || len(q.lossy)+len(q.lasting) == 0:
		if !q.closed {
			q.idle = nil
		}
		return event{}, false
	case len(q.lasting) == 0, len(q.lossy) > 0 && q.lossy[0].seq < q.lasting[0].seq:
		from = &q.lossy
	default:
		from = &q.lasting
	}
	e := q.removeLocked(from, 0)
	q.running = e.seq
	return e, true
}

func (q *eventQueue) call(e event) {
	defer func() {
		if v := recover(); v != nil {
			q.onPanic(v, debug.Stack())
		}
	}()
	q.handle(e)
}

// newest returns a mark for handled: all events pushed so far.
func (q *eventQueue) newest() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

// handled waits until each event up to mark was handled or dropped, ctx ends
// or the queue is closed.
func (q *eventQueue) handled(ctx context.Context, mark uint64) {
	for {
		q.mu.Lock()
		if q.closed || !q.owesLocked(mark) {
			q.mu.Unlock()
			return
		}
		if q.moved == nil {
			q.moved = make(chan struct{})
		}
		moved := q.moved
		q.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

func (q *eventQueue) owesLocked(mark uint64) bool {
	return q.running != 0 && q.running <= mark ||
		len(q.lossy) > 0 && q.lossy[0].seq <= mark ||
		len(q.lasting) > 0 && q.lasting[0].seq <= mark
}

// close drops what wasn't delivered and returns a channel that is closed once
// no handler runs.
func (q *eventQueue) close() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.lossy, q.lasting, q.bytes = nil, nil, 0
	if q.moved != nil {
		close(q.moved)
		q.moved = nil
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
		close(q.idle)
	}
	return q.idle
}

func (q *eventQueue) drops() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

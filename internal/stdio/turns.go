package stdio

import "time"

// Who reads. One goroutine at a time has the turn to read stdout and to handle
// what it finds. It is the reader's as long as little happens: it sleeps in the
// poller, and hears of notifications, of requests and of the end.
//
// But a reader costs each answer two wake-ups, its own and that of the caller.
// So when calls follow one another closely, and never two at once, the reader
// lets go of the turn, and each caller takes it and reads its own answer. Who
// reads can't hear its ctx. Therefore the reader looks each turnTime: it takes
// the turn from a caller who has had it all the time since the last look, and
// takes it up when nobody has had it. From then on all is as before; so a ctx
// that ends, or a loss, is noticed two turnTimes later at most.
//
// A caller whose answer is there lets go of the turn, unless other calls wait,
// a read has failed or the reader wants it: then it gives it to the reader. Only
// the reader ever concludes that the connection is lost.

// turnTime is the time between two looks, and between two answers that follow
// one another closely.
const turnTime = time.Millisecond

// whose is the state of the turn.
type whose uint8

const (
	readers whose = iota
	nobodys
	callers
	wanted // a caller's, and the reader waits for it
)

type turns struct {
	possible bool        // there are deadlines, which take the turn back
	reader   chan error  // gives the turn to the reader, with the error of the caller's read; holds one
	last     time.Time   // answer that the reader handled; the reader's
	tick     *time.Timer // the reader's

	// These are guarded by Conn.mu.
	whose whose
	taken uint64 // how often by callers
	crowd bool   // two calls have been under way at once since the reader last looked
}

// readInTurns reads until there is an error, as chunk's.
func (r *reader) readInTurns() error {
	for {
		if err := r.chunk(r.read); err != nil {
			return err
		}
		if r.letGo() {
			if err := r.standBy(); err != nil {
				return err
			}
		}
	}
}

// letGo lets go of the reader's turn if that pays.
func (r *reader) letGo() bool {
	if !r.answered {
		return false
	}
	r.answered = false
	now := time.Now()
	closely := now.Sub(r.turns.last) < turnTime
	r.turns.last = now
	if !closely || !r.turns.possible {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if crowd := r.turns.crowd; crowd || r.reason != nil || r.awaitedLocked() {
		r.turns.crowd = false
		return false
	}
	r.turns.whose = nobodys
	return true
}

// standBy returns when the turn is the reader's again.
func (r *reader) standBy() error {
	t := &r.turns
	if t.tick == nil {
		t.tick = time.NewTimer(turnTime)
	}
	for seen := uint64(0); ; {
		t.tick.Reset(turnTime)
		select {
		case err := <-t.reader:
			t.tick.Stop()
			return err
		case <-t.tick.C:
		}
		r.mu.Lock()
		switch {
		case t.whose == readers: // it is about to be given
		case t.taken != seen:
			seen = t.taken
		case t.whose == nobodys:
			t.whose = readers
			r.mu.Unlock()
			return nil
		default:
			t.whose = wanted
			r.mu.Unlock()
			return r.takeBack()
		}
		r.mu.Unlock()
	}
}

// takeBack wakes the caller who has the turn, and waits for it.
func (r *reader) takeBack() error {
	_ = r.proc.Stdout.SetReadDeadline(longAgo) // an error tells that it is closed, which wakes as well
	if err := <-r.turns.reader; err != nil {
		return err
	}
	_ = r.proc.Stdout.SetReadDeadline(time.Time{})
	// That may have undone a wake-up by lose, which gives its reason first.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != nil {
		return errWoken
	}
	return nil
}

// takeTurn reads until the answer to o is there, if the turn is still nobody's.
func (r *reader) takeTurn(o *outgoing) {
	t := &r.turns
	r.mu.Lock()
	if t.whose != nobodys {
		r.mu.Unlock()
		return
	}
	t.whose = callers
	t.taken++
	r.mu.Unlock()

	var err error
	for len(o.ready) == 0 && err == nil {
		err = r.chunk(r.read)
	}

	r.mu.Lock()
	if err == nil && t.whose == callers && r.reason == nil && !r.awaitedLocked() {
		t.whose = nobodys
		r.mu.Unlock()
		return
	}
	t.whose = readers
	r.mu.Unlock()
	if err == errWoken {
		err = nil // by the reader, or by lose, which the reader will find out
	}
	t.reader <- err
}

// awaitedLocked reports that a call awaits its answer.
func (c *Conn) awaitedLocked() bool { return len(c.pending) > c.lasting }

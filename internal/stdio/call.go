package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/jsonscan"
)

// ToolCall is one tools/call.
type ToolCall struct {
	Tool string
	Args json.RawMessage // a JSON object; nil is sent as {}
	Meta json.RawMessage // the object "_meta", nil for none
	More json.RawMessage // further members of the params, without braces; nil for none

	// Gate is asked right before the bytes go to the server, with all other
	// writes waiting; an error of it refuses the call. It must be quick. It may
	// run on any goroutine, and again when the pipe turns out to be full. nil
	// means none.
	Gate func() error

	// Progress makes Call wait until every notification that arrived before the
	// answer was handled, or ctx ends: the answer counts all the same. Don't ask
	// for it in OnNotification, which would wait for itself.
	Progress bool

	// ID, unless it is nil, is set to the id that the request has on the wire.
	ID *int64
}

// Answer is the answer to a tools/call.
type Answer struct {
	Result json.RawMessage // undecoded
	Long   jsonscan.Long   // the longest string in it
	o      *outgoing
}

// Release ends the use of the result, whose memory serves the next one. It is
// called once, or never, which leaves the memory to the garbage collector.
func (a Answer) Release() { a.o.free() }

// Call calls a tool. The answer is to be released.
//
// Its errors are [*Error], the server's own; [*rpc.AnswerError]; [*NotSentError],
// when nothing of the request went out; ctx's, after which the server is told that
// the call is cancelled; and [*DeadError]. After all but NotSentError the tool may
// have run.
func (c *Conn) Call(ctx context.Context, r ToolCall) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, &NotSentError{Err: err}
	}
	o := c.newOutgoing()
	o.id = c.ids.Add(1)
	if r.ID != nil {
		*r.ID = o.id
	}
	o.gate = r.Gate
	o.frame = frame.AppendToolCall(o.grow(len(r.Tool)+len(r.Args)+len(r.Meta)+len(r.More)), o.id,
		frame.ToolCall{Name: r.Tool, Args: r.Args, Meta: r.Meta, More: r.More})
	if err := c.roundTrip(ctx, o); err != nil {
		return Answer{}, err
	}
	if r.Progress {
		c.events.handled(ctx, o.mark)
	}
	if o.rpcErr != nil {
		err := decodeError(o.rpcErr)
		o.free()
		return Answer{}, err
	}
	return Answer{o.result, o.long, o}, nil
}

// outgoings holds what can be used again.
var outgoings = sync.Pool{New: func() any {
	o := &outgoing{ready: make(chan struct{}, 1)}
	o.try = func(fd uintptr) { o.verdict = o.conn.turn(fd) }
	return o
}}

func (c *Conn) newOutgoing() *outgoing {
	o := outgoings.Get().(*outgoing)
	o.conn = c
	return o
}

// grow returns the frame's buffer, empty, with room for a message that carries
// so many bytes of its caller.
func (o *outgoing) grow(payload int) []byte {
	if need := payload + 128; need > cap(o.frame) {
		o.frame = make([]byte, 0, need)
	}
	return o.frame[:0]
}

// free gives o back if nobody else refers to it.
func (o *outgoing) free() {
	putBuffer(o.lent)
	o.lent = nil
	if o.reuse {
		*o = outgoing{ready: o.ready, frame: o.frame, kept: o.kept, try: o.try}
		outgoings.Put(o)
	}
}

// roundTrip sends o and waits for its answer, which is in o if there is no
// error.
func (c *Conn) roundTrip(ctx context.Context, o *outgoing) error {
	c.mu.Lock()
	if c.dead != nil {
		dead := c.dead
		c.mu.Unlock()
		return &NotSentError{Err: dead}
	}
	c.awaitLocked(o)
	free := c.reader.turns.whose == nobodys && !o.lasting
	writer := c.out.pushLocked(o)
	c.mu.Unlock()
	if writer {
		c.flush(o)
	}
	if free {
		c.reader.takeTurn(o)
	}

	select {
	case <-o.ready:
	case <-ctx.Done():
		if err := c.abandon(ctx, o); err != nil {
			return err
		}
		<-o.ready
	}
	if err := o.err; err != nil {
		o.free()
		return err
	}
	return nil
}

func (c *Conn) awaitLocked(o *outgoing) {
	c.pending[o.id] = o
	if o.lasting {
		c.lasting++
	}
	if len(c.pending)-c.lasting > 1 {
		c.reader.turns.crowd = true
	}
}

func (c *Conn) forgetLocked(o *outgoing) {
	delete(c.pending, o.id)
	if o.lasting {
		c.lasting--
	}
}

// abandon gives up a call whose ctx has ended. When its answer has arrived at
// the same time, the answer wins: abandon returns nil, and ready gives.
func (c *Conn) abandon(ctx context.Context, o *outgoing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[o.id] != o {
		return nil
	}
	c.forgetLocked(o)
	if !c.out.withdrawLocked(o) {
		return &NotSentError{Err: ctx.Err()}
	}
	c.count.abandoned.Add(1)
	if !o.unnoticed {
		c.sendLocked(cancelNotice(o.id, ctx.Err()))
	}
	return ctx.Err()
}

// cancelNotice tells the server that a request was given up, see
// https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation.
func cancelNotice(id int64, reason error) []byte {
	why := "the client gave up on it"
	if errors.Is(reason, context.DeadlineExceeded) {
		why = "the client's deadline passed"
	}
	params := fmt.Appendf(nil, `{"requestId":%d,"reason":"%s"}`, id, why)
	return frame.AppendNotification(nil, "notifications/cancelled", params)
}

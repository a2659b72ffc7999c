package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/rpc"
)

const (
	maxServing     = 8        // requests of the server that are answered at once
	maxServeQueued = 64       // and that wait for it
	maxServeBytes  = 16 << 20 // of those that wait
	maxReplies     = 1 << 20  // bytes of answers that wait for the server to read them
)

// codeBusy is the JSON-RPC error for a server that asks too much at once, out
// of the range that the specification leaves to implementations.
const codeBusy = -32000

// asked is a request of the server. Its slices are copies.
type asked struct {
	id     []byte // raw
	method string
	params json.RawMessage
	ctx    context.Context
	cancel context.CancelFunc
	after  *asked        // which is answered before this one; nil for none
	over   chan struct{} // closed once it is answered, or will not be
}

// methodRoots asks for what may change from one request to the next, so that an answer
// must not come after a newer one.
const methodRoots = "roots/list"

// serving answers the requests of the server, on goroutines that exist only
// while there are any.
type serving struct {
	conn *Conn

	mu      sync.Mutex // protects the fields below
	queue   []*asked
	bytes   int               // of the params in the queue
	running int               // goroutines
	open    map[string]*asked // by raw id: queued or running
	roots   *asked            // the last request for roots
	closed  bool
	idle    chan struct{} // closed once closed is set and running is 0
}

func (s *serving) init(c *Conn) {
	s.conn = c
	s.open = make(map[string]*asked)
	s.idle = make(chan struct{})
}

// request takes a request of the server. ping is answered on the spot: it says
// that the host is alive, whatever its handlers do.
func (r *reader) request(m *frame.Message) {
	switch {
	case m.Method == "ping":
		r.reply(frame.AppendResult(nil, m.RawID, []byte("{}")))
	case !r.server.push(m):
		r.count.refused.Add(1)
		r.reply(frame.AppendError(nil, m.RawID, codeBusy, "too many requests at once", nil))
	}
}

// reply sends an answer to the server. One that reads nothing while it keeps
// asking gets no more answers.
func (c *Conn) reply(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.replies > 0 && c.out.replies+len(frame) > maxReplies {
		c.count.refused.Add(1)
		return
	}
	c.sendLocked(frame)
}

// push queues a request; false when there are too many.
func (s *serving) push(m *frame.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true // nobody is left to hear an answer
	}
	full := len(s.queue) >= maxServeQueued || s.bytes > 0 && s.bytes+len(m.Params) > maxServeBytes
	if full || s.open[string(m.RawID)] != nil {
		return false
	}
	a := &asked{id: bytes.Clone(m.RawID), method: m.Method, params: bytes.Clone(m.Params), over: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(s.conn.ctx)
	if a.method == methodRoots {
		a.after, s.roots = s.roots, a
	}
	s.open[string(a.id)] = a
	s.queue = append(s.queue, a)
	s.bytes += len(a.params)
	if s.running < maxServing {
		s.running++
		go s.run(nil)
	}
	return true
}

// cancelled ends the request that the server has given up on; params are those
// of its notification.
func (s *serving) cancelled(params []byte) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	a := s.open[string(p.ID)]
	s.mu.Unlock()
	if a != nil {
		a.cancel()
	}
}

// run answers what is queued until nothing is left, also after a handler that ends the
// goroutine. last is what was answered last.
func (s *serving) run(last *asked) {
	over := false
	defer func() {
		if !over {
			go s.run(last)
		}
	}()
	for {
		last = s.next(last)
		if over = last == nil; over {
			return
		}
		s.serve(last)
	}
}

// serve answers one request, unless that is cancelled meanwhile.
func (s *serving) serve(a *asked) {
	defer close(a.over)
	defer a.cancel()
	if a.after != nil {
		select {
		case <-a.after.over: // it runs, since it was queued before
		case <-a.ctx.Done():
		}
		a.after = nil
	}
	if a.ctx.Err() != nil {
		return
	}
	answer := frame.AppendError(nil, a.id, rpc.CodeInternalError, failedToAnswer, nil) // unless the handler returns
	defer func() {
		if a.ctx.Err() == nil {
			s.conn.reply(answer)
		}
	}()
	answer = s.conn.answerTo(a)
}

const failedToAnswer = "the client failed to answer"

// next ends the last request and returns another, or nil: then the goroutine
// counts as ended.
func (s *serving) next(last *asked) *asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last != nil {
		delete(s.open, string(last.id))
	}
	if len(s.queue) == 0 || s.closed {
		s.running--
		if s.closed && s.running == 0 {
			close(s.idle)
		}
		return nil
	}
	a := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.bytes -= len(a.params)
	return a
}

// close drops what waits, and returns a channel that is closed once no handler
// runs. The handlers' ctx has ended by then. It is called once.
func (s *serving) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, a := range s.queue {
		a.cancel()
	}
	s.queue = nil
	if s.running == 0 {
		close(s.idle)
	}
	return s.idle
}

// answerTo asks the host's handler and returns its answer as a line.
func (c *Conn) answerTo(a *asked) []byte {
	result, err := c.askHandler(a)
	if err == nil {
		raw, encodeErr := encoded(result)
		if encodeErr == nil {
			return frame.AppendResult(nil, a.id, raw)
		}
		err = encodeErr
	}
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = &Error{Code: rpc.CodeInternalError, Message: err.Error()}
	}
	return frame.AppendError(nil, a.id, refusal.Code, refusal.Message, refusal.Data)
}

// askHandler calls the host's handler. Its panic is an answer too.
func (c *Conn) askHandler(a *asked) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.handlerPanicked(v, debug.Stack())
			result, err = nil, &Error{Code: rpc.CodeInternalError, Message: failedToAnswer}
		}
	}()
	if c.cfg.OnRequest != nil {
		return c.cfg.OnRequest(a.ctx, a.method, a.params)
	}
	return nil, &Error{Code: rpc.CodeMethodNotFound, Message: "method not found: " + a.method}
}

// encoded encodes what isn't JSON already.
func encoded(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return raw, nil
	}
	return encode.JSON(v)
}

package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/rpc"
)

const (
	maxJunk      = 256                    // bytes of a junk line that OnJunk is called with
	maxTailLine  = 1 << 10                // bytes of a junk line that are kept in the tail
	junkInterval = 100 * time.Millisecond // between two calls of OnJunk
)

var (
	errWoken = errors.New("woken by lose")
	errEmpty = errors.New("nothing to read now")
)

// reader is what whoever reads stdout needs, see turns.go.
type reader struct {
	*Conn
	turns    turns
	read     func([]byte) (int, error) // of stdout
	lines    *lineBuffer
	alone    bool      // the message at hand is the only one on its line
	answered bool      // a call since the last look
	junkTold time.Time // of the last call of OnJunk
}

// newReader is to be called before lose may set a deadline.
func newReader(c *Conn, stdout *os.File) *reader {
	r := &reader{Conn: c, read: stdout.Read, lines: newLineBuffer(c.cfg.MaxMessageSize)}
	r.turns.reader = make(chan error, 1)
	r.turns.possible = stdout.SetReadDeadline(time.Time{}) == nil
	return r
}

// readAll is the reader: it sees to it that stdout is read to its end, or until
// the connection is lost otherwise, and then declares the loss. It never waits
// for anything else.
func (r *reader) readAll() {
	defer close(r.Conn.read)
	err := r.readInTurns()
	if err == errWoken {
		// Somebody else saw the connection end. What the server managed to say
		// before is still in the pipe, which others may hold open.
		last := r.stdout.lastReads()
		for err = nil; err == nil; {
			err = r.chunk(last)
		}
		if err != ErrTooLong {
			err = ErrEOF
		}
	}
	if err == ErrEOF {
		r.line(r.lines.rest()) // the last line may lack its newline
	}
	r.lines = nil
	r.conclude(err)
}

// chunk reads once and handles the lines that are whole then. Its error is
// ErrEOF, ErrTooLong or errWoken.
func (r *reader) chunk(read func([]byte) (int, error)) error {
	n, err := read(r.lines.space())
	r.cfg.Traffic.In.Add(int64(n))
	r.lines.read(n)
	for {
		line, ok := r.lines.next()
		if !ok {
			break
		}
		if len(line) > r.cfg.MaxMessageSize {
			return ErrTooLong // its end came with the read that went over the limit
		}
		r.line(line)
	}
	if r.lines.tooLong() {
		return ErrTooLong
	}
	if err != nil {
		return readError(err)
	}
	if r.lines.large() && r.quiet() {
		r.lines.shrink()
	}
	return nil
}

// quiet reports that no call awaits its answer.
func (c *Conn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.awaitedLocked()
}

// line handles one line, which is one message or more.
func (r *reader) line(line []byte) {
	line = frame.Trim(line)
	if len(line) == 0 {
		r.odd.blank()
		return
	}
	m, err := frame.Parse(line)
	if err == nil {
		r.odd.header = false
		r.alone = true
		r.message(&m)
		r.alone = false
		return
	}
	each := func(raw []byte) {
		if m, err := frame.Parse(raw); err == nil {
			r.message(&m)
		} else {
			r.junk(raw)
		}
	}
	if !frame.Batch(line, each) && !frame.Salvage(line, each) && !r.broken(line) {
		r.junk(line)
	}
}

func (r *reader) message(m *frame.Message) {
	switch m.Kind {
	case frame.Response:
		r.answer(m)
	case frame.Request:
		r.request(m)
	case frame.Notification:
		r.notification(m)
	default:
		panic("bug: a message of no kind")
	}
}

// answer hands an answer to its caller, who decodes it.
func (r *reader) answer(m *frame.Message) {
	r.mu.Lock()
	o := r.callOfLocked(m)
	if o == nil {
		r.mu.Unlock()
		r.count.late.Add(1)
		r.stray(m)
		return
	}
	r.endLocked(o)
	r.mu.Unlock()

	o.rpcErr = bytes.Clone(m.Error)
	r.keep(o, m.Result)
	o.long = m.Long
	o.mark = r.events.newest()
	r.answered = true
	o.ready <- struct{}{}
}

// endLocked takes a call that has its answer out of the table.
func (r *reader) endLocked(o *outgoing) {
	r.forgetLocked(o)
	// The writer may not yet have noted that the message is out; then it still
	// refers to it.
	o.reuse = o.phase == phaseSent
	if !o.reuse {
		o.phase = phaseGone
	}
	r.odd.heard = true
}

// broken fails the call that a line answers which isn't quite JSON, and reports
// whether there is one.
func (r *reader) broken(line []byte) bool {
	id, wrong, ok := frame.Broken(line)
	if !ok {
		return false
	}
	r.mu.Lock()
	o := r.pending[id]
	if o == nil || !o.begun() {
		r.mu.Unlock()
		return false
	}
	r.endLocked(o)
	r.mu.Unlock()
	o.err = &rpc.AnswerError{Reason: wrong.Error()}
	r.answered = true
	o.ready <- struct{}{}
	return true
}

// keep makes a result its caller's, for the line is the next one's soon.
func (r *reader) keep(o *outgoing, result []byte) {
	o.result = result
	if r.alone {
		if o.lent = r.lines.give(len(result)); o.lent != nil {
			return
		}
	}
	switch {
	case result == nil:
	case len(result) <= keptFrame:
		o.kept = append(o.kept[:0], result...)
		o.result = o.kept
	default:
		o.result = bytes.Clone(result)
	}
}

// callOfLocked finds the call that a message answers, among those of which the
// server can have seen something. An error whose id is null says that the server
// couldn't read a request, if its code does: when only one is under way, it is that
// one. With several it could be any of them, so none is failed for it. Other errors
// without an id are what many servers say to notifications that they don't know.
func (c *Conn) callOfLocked(m *frame.Message) *outgoing {
	if m.ID.Kind == frame.Integer {
		if o := c.pending[m.ID.Int]; o != nil && o.begun() {
			return o
		}
		return nil
	}
	if m.Error == nil || m.ID.Kind == frame.Other || !unreadable(m.Error) {
		return nil
	}
	var only *outgoing
	for _, o := range c.pending {
		switch {
		case o.lasting || !o.begun():
		case only != nil:
			return nil
		default:
			only = o
		}
	}
	return only
}

// unreadable reports whether an error says that a request couldn't be read, see
// https://www.jsonrpc.org/specification#response_object.
func unreadable(rpcErr []byte) bool {
	code := decodeError(rpcErr).Code
	return code == rpc.CodeParseError || code == rpc.CodeInvalidRequest
}

func (r *reader) notification(m *frame.Message) {
	if m.Method == "notifications/cancelled" {
		r.server.cancelled(m.Params)
	}
	if r.cfg.OnNotification == nil {
		return
	}
	r.events.push(event{method: m.Method, params: bytes.Clone(m.Params)})
}

func (r *reader) junk(line []byte) {
	total := r.count.junk.Add(1)
	r.Conn.junk.write(append(bytes.Clone(cut(line, maxTailLine)), '\n'))
	r.peculiar(line)
	if r.cfg.OnJunk == nil {
		return
	}
	if now := time.Now(); now.Sub(r.junkTold) >= junkInterval {
		r.junkTold = now
		r.events.push(event{junk: int(total), params: bytes.Clone(cut(line, maxJunk))})
	}
}

// readError says what an error of stdout means.
func readError(err error) error {
	if err == io.EOF {
		return ErrEOF
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errWoken
	}
	return ErrEOF // closed by the end of the process tree
}

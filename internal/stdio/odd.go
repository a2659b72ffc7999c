package stdio

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mcppool/mcppool/internal/frame"
)

// maxSpread bounds the lines of one message that are collected, in bytes.
const maxSpread = 64 << 10

var (
	errFraming = errors.New("server speaks Content-Length framing, not one message a line")
	errSpread  = errors.New("server spreads its messages over several lines, and has to write each on one")
)

// oddity is what a server that has answered nothing yet says in place of an answer,
// and that explains why none will come.
type oddity struct {
	found  chan struct{} // closed once there is one
	reason error         // the first; written before found is closed

	// The reader's. heard is guarded by Conn.mu as well.
	heard  bool   // a call got its answer
	spread []byte // lines so far of what may be one message; nil outside of such
}

// Odd returns a channel that is closed when the server, which hasn't answered yet,
// is found to speak in a way in which it never will. It may be wrong: a server may
// print what looks so before it answers.
func (c *Conn) Odd() <-chan struct{} { return c.odd.found }

// OddReason returns why, after Odd.
func (c *Conn) OddReason() error { return c.odd.reason }

func (o *oddity) is(reason error) {
	if o.reason == nil {
		o.reason = reason
		close(o.found)
	}
}

// stray looks at an answer to no call.
func (r *reader) stray(m *frame.Message) {
	if r.odd.heard || !r.alone || m.ID.Kind != frame.Integer {
		return
	}
	if id := m.ID.Int; id <= r.first || id > r.ids.Load() {
		r.odd.is(fmt.Errorf("server answers with an id that it was never given: %d", id))
	}
}

// peculiar looks at a line that is no message.
func (r *reader) peculiar(line []byte) {
	o := &r.odd
	if o.heard || o.reason != nil {
		o.spread = nil
		return
	}
	const header = "content-length:"
	if len(line) >= len(header) && bytes.EqualFold(line[:len(header)], []byte(header)) {
		o.is(errFraming)
		return
	}
	switch {
	case string(line) == "{" || string(line) == "[":
		o.spread = append([]byte{}, line...) // the first of its lines
		return
	case o.spread == nil:
		return
	case len(o.spread)+len(line) > maxSpread:
		o.spread = nil
		return
	}
	o.spread = append(append(o.spread, '\n'), line...)
	if line[0] != '}' {
		return
	}
	if _, err := frame.Parse(o.spread); err == nil {
		o.is(errSpread)
	}
}

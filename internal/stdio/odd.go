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

// Oddity is what a server that has answered nothing yet says in place of an answer.
type Oddity struct {
	Reason error
	// Sure is set where nothing but an answer looks like that. Else the server may as
	// well print what it found in a log before it answers.
	Sure bool
}

// maxOddities bounds those that nobody has taken yet.
const maxOddities = 8

// oddities finds the Oddity of a server. All but found is the reader's; heard is
// guarded by Conn.mu as well.
type oddities struct {
	found  chan Oddity
	heard  bool   // a call got its answer
	header bool   // the lines before were headers of framing
	spread []byte // lines so far of what may be one message; nil outside of such
}

// Odd returns a channel of what the server, which hasn't answered yet, says in a way in
// which it never will. It holds the first few.
func (c *Conn) Odd() <-chan Oddity { return c.odd.found }

func (o *oddities) is(reason error, sure bool) {
	select {
	case o.found <- Oddity{reason, sure}:
	default:
	}
}

// stray looks at an answer to no call.
func (r *reader) stray(m *frame.Message) {
	if r.odd.heard || !r.alone || m.ID.Kind != frame.Integer {
		return
	}
	if id := m.ID.Int; id <= r.first || id > r.ids.Load() {
		r.odd.is(fmt.Errorf("server answers with an id that it was never given: %d", id), false)
	}
}

// blank is called with an empty line, which ends the headers of framing.
func (o *oddities) blank() {
	if o.header && !o.heard {
		o.is(errFraming, true)
	}
	o.header = false
}

// peculiar looks at a line that is no message.
func (r *reader) peculiar(line []byte) {
	o := &r.odd
	if o.heard {
		o.spread, o.header = nil, false
		return
	}
	if hasHeader(line, "content-length:") {
		o.header = true
		return
	}
	o.header = o.header && hasHeader(line, "content-type:")
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
	if m, err := frame.Parse(o.spread); err == nil {
		o.spread = nil
		id := m.ID.Int
		o.is(errSpread, m.Kind == frame.Response && m.ID.Kind == frame.Integer && id > r.first && id <= r.ids.Load())
	}
}

func hasHeader(line []byte, name string) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}

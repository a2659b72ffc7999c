package pooldebug

import (
	"context"
	"time"

	"github.com/mcppool/mcppool"
)

// Of what servers write beside their messages, a page takes this many lines a
// second, and no more than some from one session, so that a server that writes
// without end hides neither other servers' lines nor anything else. It remembers
// the last maxLines of them. The end of a session's stderr is in its details all
// the same.
const (
	maxLines     = 128
	linesASecond = 8
	linesOfOne   = 4 // of those
)

const (
	kindStderr = "stderr"
	kindJunk   = "junk on stdout"
)

// output is the lines that servers wrote beside their messages.
type output struct {
	lines   ring[event]
	leftOut uint64
	second  int64                // since 1970, that the next two are of
	taken   int                  // in this second
	from    [linesASecond]string // the sessions whose lines they are
}

// takes reports whether a line of a session is to be remembered, and counts it
// either way.
func (o *output) takes(session string, now int64) bool {
	if second := now / int64(time.Second); second != o.second {
		o.second, o.taken = second, 0
	}
	own := 0
	for _, id := range o.from[:o.taken] {
		if id == session {
			own++
		}
	}
	if o.taken == linesASecond || own == linesOfOne {
		o.leftOut++
		return false
	}
	o.from[o.taken] = session
	o.taken++
	return true
}

func (p *Page) stderr(_ context.Context, i mcppool.StderrInfo) {
	p.wrote(kindStderr, levelInfo, i.Origin, i.Line)
}

func (p *Page) junk(_ context.Context, i mcppool.JunkInfo) {
	p.wrote(kindJunk, levelWarn, i.Origin, i.Line)
}

func (p *Page) wrote(kind string, l level, from mcppool.Origin, line string) {
	now := time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.output.takes(from.SessionID, now) {
		p.tellLocked(&p.output.lines, event{
			at: now, kind: kind, level: l, session: from.SessionID, server: from.Server, text: cut(line, maxText),
		})
	}
}

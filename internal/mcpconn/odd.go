package mcpconn

import (
	"context"
	"time"

	"github.com/mcppool/mcppool/internal/stdio"
)

// What is to be thought of a server that says what makes no sense in place of an
// answer. Some never answer in any other way: those that frame their messages, spread
// them over several lines, or give all the same id. Others printed a line from a log, or
// a header, and answer once they are up. So what looks like an answer and may be none
// counts only once the server has read what it was asked, and has it asked the other
// question: a server that answers each in that way has no other.

var (
	// oddTime is how long a server has to answer all the same that is sure to have
	// answered in another way.
	oddTime = time.Second

	// doubtTime is how long where that isn't sure; it is half of what is left when that
	// is less. A variable for the tests alone.
	doubtTime = 10 * time.Second
)

// odd is what a greeting has heard that makes no sense.
type odd struct {
	reason  error
	sure    bool
	answers int              // that may be none, since the server read what it was asked
	verdict <-chan time.Time // when the server has had its time; nil while there is no reason
}

// hear takes what makes no sense.
func (g *greeting) hear(ctx context.Context, o stdio.Oddity) {
	switch {
	case g.odd.sure:
		return
	case o.Sure:
		g.odd.sure = true
	case g.hasUnread():
		return
	default:
		g.odd.answers++
		g.odd.sure = len(g.asked) > 1 && g.odd.answers >= len(g.asked)
	}
	g.odd.reason = o.Reason
	switch {
	case g.odd.sure:
		g.odd.verdict = time.After(oddTime)
	case g.odd.verdict == nil:
		g.odd.verdict = time.After(g.doubt(ctx))
	}
	if !g.odd.sure && len(g.order) > 0 && g.hasty {
		g.askOn(ctx)
	}
}

// isSenseless reports whether a server that has had its time won't answer. One that has
// yet to read what it was asked gets more.
func (g *greeting) isSenseless() bool {
	if g.hasUnread() {
		g.odd.verdict = time.After(oddTime)
		return false
	}
	return true
}

// hasUnread reports whether the server has yet to read what it was asked, where that is
// known.
func (g *greeting) hasUnread() bool {
	n, known := unread(g.conn.child)
	return known && n > 0
}

func (g *greeting) doubt(ctx context.Context) time.Duration {
	if half := g.halfOfAll(ctx); half > 0 {
		return min(doubtTime, half)
	}
	return doubtTime
}

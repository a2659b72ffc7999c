package poolstate

import (
	"sync/atomic"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/fairqueue"
	"github.com/mcppool/mcppool/internal/idle"
	"github.com/mcppool/mcppool/internal/list"
	"github.com/mcppool/mcppool/internal/turn"
)

// Status is how far a session has come.
type Status uint8

// The statuses, in the order in which a session goes through them; it may leave
// out any but the last two.
//
//	queued ──▶ connecting ──▶ live ──▶ closing ──▶ closed
//	   └──────────┴─────────────────────▲
const (
	Queued Status = iota
	Connecting
	Live
	Closing
	Closed
)

func (s Status) String() string {
	return [...]string{"queued", "connecting", "live", "closing", "closed"}[s]
}

// Session is one connection of one server, for one scope or for all. Besides its
// status it is linked or not: a linked session is where calls find it, under its
// key or, for a shared server, in its group. It is unlinked before it is closed, and
// never linked again. One-shot sessions are never linked, and spares not before they
// are handed out. An unlinked session is closed by the last borrower that leaves, or
// at once when it is killed.
//
// What every call looks at comes first, in few cache lines: with many sessions those
// are what a warm call costs.
type Session struct {
	// Owner is the owner's; a Session that is new has none.
	Owner any
	// Group is that of its server.
	Group *Group

	killed chan struct{}   // may be used without the owner's lock, as stale may
	lost   <-chan struct{} // closed when the connection is gone
	scope  *scope          // nil without a scope
	stale  atomic.Bool

	status       Status
	linked       bool
	oneShot      bool
	shared       bool
	spare        bool
	process      bool // it counts in the tallies once it has started
	heavy        bool // it uses too much memory
	doubted      bool // a call of it was given up
	probed       bool // it is being asked whether it answers
	refill       bool // it was handed out or started for a server that wants spares
	betweenTurns bool // the call of one borrower has ended, and the next not begun

	inFlight  int
	calls     uint64
	recycleAt Moment // when it is too old; zero for never
	reason    Reason // of the unlinking, or of the kill if that came first
	looked    Moment // when it last looked whether it keeps others waiting

	turns   turn.Line[*Session] // who may call: one borrower, and the others wait in order
	idle    idle.Entry[*Session]
	inGroup list.Node[*Session] // in Group.idle or Group.warming
	inScope list.Node[*Session] // in scope.idle

	// Key is whose it is. It changes when a spare is handed out, and not under a
	// borrower but a visitor.
	Key Key
	// ID is never used twice by one State.
	ID uint64
	// Opened is when it was begun.
	Opened Moment
	// Caller is that of the first place in the line for which the State began it.
	Caller any

	policy   Policy
	ahead    bool                      // it was begun as a spare
	ran      bool                      // it has started
	attempt  backoff.Attempt[Digest]   // to start the server
	begun    Moment                    // when it started
	patient  Moment                    // in the queue, until when it lets busy ones go on
	follows  Reason                    // see Follows
	parting  error                     // of its Retire
	place    *fairqueue.Item[*Session] // in the queue; nil when it isn't
	inState  list.Node[*Session]       // in State.warming
	starting list.Node[*Session]       // in State.starts

	// These may be used without the owner's lock once the channel is closed that they
	// belong to.

	admitted chan struct{} // see Admitted
	refusal  error         // why it left the queue without a connect; written before admitted is closed
	cause    error         // why it was killed; written before killed is closed
}

// Admitted is closed when the session leaves the queue, to be connected or for a
// [Session.Refusal]; nil if it never was in it.
func (s *Session) Admitted() <-chan struct{} { return s.admitted }

// Refusal is why a session left the queue without being connected; nil if it
// didn't. It may be called once Admitted is closed.
func (s *Session) Refusal() error { return s.refusal }

// Killed is closed when the session is closed under its borrowers.
func (s *Session) Killed() <-chan struct{} { return s.killed }

// Cause is why the session was killed; nil if it wasn't.
func (s *Session) Cause() error {
	if isClosed(s.killed) {
		return s.cause
	}
	return nil
}

// Stale reports whether the session was unlinked.
func (s *Session) Stale() bool { return s.stale.Load() }

// Lost reports whether the connection is gone. Who doesn't hold the lock may call
// it once the session is live.
func (s *Session) Lost() bool { return isClosed(s.lost) }

// Done is closed when the connection is gone; nil before the session is live.
func (s *Session) Done() <-chan struct{} { return s.lost }

// Probed reports whether the session is kept, and probed, when a call of it was given
// up. It doesn't change under a borrower, who may call it without the lock.
func (s *Session) Probed() bool { return s.policy.Probe }

// Follows is why the last session ended that calls found where they find s; empty when
// there was none, or that is forgotten. It changes as Key does.
func (s *Session) Follows() Reason { return s.follows }

// The methods below are under the owner's lock.

// Policy is how the session is kept: as the call said that it serves.
func (s *Session) Policy() Policy { return s.policy }

// Status returns how far the session has come.
func (s *Session) Status() Status { return s.status }

// Reason is why the session was unlinked or killed; empty as long as it wasn't.
func (s *Session) Reason() Reason { return s.reason }

// Linked reports whether calls can find the session.
func (s *Session) Linked() bool { return s.linked }

// Spare reports whether the session is connected ahead, and nobody's yet.
func (s *Session) Spare() bool { return s.spare }

// OneShot reports whether the session is never kept.
func (s *Session) OneShot() bool { return s.oneShot }

// InFlight is how many borrow the session, those that wait included.
func (s *Session) InFlight() int { return s.inFlight }

// Calls is how many tool calls have ended in it.
func (s *Session) Calls() uint64 { return s.calls }

// LastUsed is when the session was last given back; zero when it never was.
func (s *Session) LastUsed() Moment {
	if s.spare {
		return 0
	}
	return s.idle.Used
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

package poolstate

import (
	"fmt"
	"time"
)

// Limits bound what runs and what waits. Zero or less is no limit.
type Limits struct {
	MaxProcesses int // connected, starting and ending ones
	MaxStarting  int // connects under way
	MaxPerScope  int // processes of one scope
	MaxPerServer int // processes of one server
	MaxWaiting   int // callers that wait for a place

	MaxWait time.Duration // of a caller for a place; its owner sees to it
}

// Limit is one of the limits that a session can wait for.
type Limit uint8

// The limits.
const (
	LimitNone Limit = iota
	LimitProcesses
	LimitStarting
	LimitScope
	LimitServer
	LimitWaiting
)

func (l Limit) String() string {
	return [...]string{"", "MaxProcesses", "MaxStarting", "MaxPerScope", "MaxPerServer", "MaxWaiting"}[l]
}

// BusyError is the refusal of a caller at a limit.
type BusyError struct {
	Limit      Limit
	Max        int           // its value
	Waiting    int           // callers that wait at limits
	RetryAfter time.Duration // about how long it takes until as many have been served
}

func (b *BusyError) Error() string {
	return fmt.Sprintf("%s is %d and %d callers wait", b.Limit, b.Max, b.Waiting)
}

func (st *State) busy(l Limit, value int) *BusyError {
	// As many starts as there are callers ahead.
	return &BusyError{Limit: l, Max: value, Waiting: st.waiting, RetryAfter: st.pace.For(st.waiting + 1)}
}

// BusyFor is the refusal of a caller that has waited too long for s to be admitted.
func (st *State) BusyFor(s *Session) *BusyError { return st.busy(st.full(s.Group, s.scope)) }

// WaitsFor is the limit that keeps s from starting, if it is queued.
func (st *State) WaitsFor(s *Session) Limit {
	if s.status != Queued {
		return LimitNone
	}
	l, _ := st.full(s.Group, s.scope)
	return l
}

// tally counts the processes of a pool, a scope or a server.
type tally struct {
	processes int
	ending    int // of processes: those whose close is under way
	queued    int // sessions in the queue

	promised int    // places that were promised in a round
	round    uint64 // which it was
}

func (t *tally) promisedIn(round uint64) int {
	if t.round != round {
		return 0
	}
	return t.promised
}

// tallies returns those that s counts in; the last is nil without a scope.
func (st *State) tallies(s *Session) [3]*tally {
	if s.scope == nil {
		return [3]*tally{&st.tally, &s.Group.tally, nil}
	}
	return [3]*tally{&st.tally, &s.Group.tally, &s.scope.tally}
}

// full returns the limit that keeps a session from starting now, with its value. The
// narrow ones come first, so that who waits for those isn't taken to wait for
// everybody's.
func (st *State) full(g *Group, sc *scope) (Limit, int) {
	l := &st.limits
	perServer := st.perServer(g)
	switch {
	case perServer > 0 && g.tally.processes >= perServer:
		return LimitServer, perServer
	case sc != nil && l.MaxPerScope > 0 && sc.tally.processes >= l.MaxPerScope:
		return LimitScope, l.MaxPerScope
	case l.MaxProcesses > 0 && st.tally.processes >= l.MaxProcesses:
		return LimitProcesses, l.MaxProcesses
	case l.MaxStarting > 0 && st.starts.Len() >= l.MaxStarting:
		return LimitStarting, l.MaxStarting
	default:
		return LimitNone, 0
	}
}

// perServer is how many processes g may have; 0 or less is no limit.
func (st *State) perServer(g *Group) int {
	if g.exclusive > 0 {
		return 1
	}
	return st.limits.MaxPerServer
}

// fullFor is full for a session that w would begin.
func (st *State) fullFor(w *Want, g *Group, sc *scope) (Limit, int) {
	if w.Exclusive && g.tally.processes > 0 {
		return LimitServer, 1
	}
	return st.full(g, sc)
}

// Limits returns the limits as they are now.
func (st *State) Limits() Limits { return st.limits }

// SetLimits replaces the limits. Raised ones let queued sessions go; lowered ones end
// nothing that is busy.
func (st *State) SetLimits(l Limits, now Moment) {
	st.limits = l
	for s := range st.idle.All {
		st.fileInScope(s)
	}
	st.watchStarts()
	st.stir(now)
}

// queueIsFull reports whether one caller more may not wait.
func (st *State) queueIsFull() bool {
	return st.limits.MaxWaiting > 0 && st.waiting >= st.limits.MaxWaiting
}

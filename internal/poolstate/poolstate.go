// Package poolstate is the state of a pool: which sessions there are, who borrows
// them, who waits for what, and what ends next.
//
// A [State] is passive. It starts no goroutine, takes no ctx, calls nobody back and
// does no I/O: its owner's lock protects it, events go in as method calls with the
// time at which they happened, and the work that must follow comes back from
// [State.Actions], to be done once the lock is released. So its rules can be tried
// over many thousand schedules a second.
//
// Times are durations since whatever moment the owner chose, and positive.
package poolstate

import (
	"time"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/fairqueue"
	"github.com/mcppool/mcppool/internal/idle"
	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/list"
)

// Moment is a time by the owner's clock; zero is before everything.
type Moment = time.Duration

// Digest stands for a configuration.
type Digest = keyed.Digest

// Key says whose session it is: one server, one scope.
type Key struct {
	Server Digest
	Scope  string
}

// Config is what never changes of a State. Zero or negative is no limit, and never.
type Config struct {
	MaxSessions int
	MaxLifetime time.Duration // up to a tenth of it is taken off at random
	MaxCalls    int
	Backoff     backoff.Config
}

// Policy says how the sessions of a server are kept. It is resolved: no field
// stands for a default.
type Policy struct {
	Remote      bool // it has no process, and its sessions are never kept
	Exclusive   bool // one session at a time over all scopes
	Shared      bool // its sessions serve all scopes
	Concurrent  bool // the calls of a shared session overlap
	Processes   int  // sessions of a shared server; 0 is 1
	Spares      int
	Bound       bool          // a session belongs to its scope, or to one caller, from its start on: none is a spare
	Probe       bool          // a session of which a call was given up is kept, and probed
	IdleTimeout time.Duration // 0 or less: never

	TermFirst bool // the owner's, as the next is
	Owner     any
}

// Want is what a caller asks for.
type Want struct {
	Key
	Policy
	Label string // of the server; needed only while no session of it is open
	Any   bool   // the caller is a visitor, see visit.go

	arrived uint64 // its number among all; set by the first Join
}

// key is under which the sessions of w are found.
func (w *Want) key() Key {
	if w.Shared || w.Any && !w.Bound {
		return Key{Server: w.Server}
	}
	return w.Key
}

// State is everything that a pool knows of its sessions.
type State struct {
	cfg    Config
	limits Limits
	closed bool

	lastID   uint64
	sessions map[Key]*Session     // the linked ones of one scope
	groups   map[Digest]*Group    // all that are open, by server
	scopes   map[string]*scope    // those of them that have a scope
	idle     idle.Lists[*Session] // linked sessions that nobody borrows
	spares   idle.Lists[*Session] // the connected ones
	backoff  backoff.Set[Digest]  // of servers that failed lately

	arrivals uint64              // callers that ever came
	starts   list.List[*Session] // connects of processes under way, but for the slow ones, in order
	warming  list.List[*Session] // spares that are connecting
	orphans  []*Session          // unlinked ones in whose line somebody stands
	tally    tally
	queue    fairqueue.Queue[*Session] // those that wait for a place
	waiting  int                       // callers that wait for those
	pace     fairqueue.Pace            // at which they get one
	round    uint64                    // in which places are promised

	futile  bool   // nobody in the queue may start because of what is idle
	stirred Moment // of the last event after which those who wait are to be looked at; zero for none
	actions []Action
	wakes   Moment // when Expire is called next; zero when nobody has asked for it

	counts Counts
	closes map[Reason]uint64
	ends   ends
}

// New returns a State without sessions.
func New(cfg Config, limits Limits) *State {
	return &State{
		cfg:      cfg,
		limits:   limits,
		sessions: make(map[Key]*Session),
		groups:   make(map[Digest]*Group),
		scopes:   make(map[string]*scope),
		backoff:  backoff.Set[Digest]{Config: cfg.Backoff},
		closes:   make(map[Reason]uint64),
	}
}

// Group is what is known of one server while any session of it is open.
type Group struct {
	Digest Digest
	// Label is what people call the server; the owner sets it together with Owner.
	Label string
	// Owner is the owner's; a Group that is new has none.
	Owner any

	members   map[*Session]struct{}
	visited   map[*Session]struct{} // see Session.Visited
	tally     tally
	exclusive int // sessions that want to be the only one
	idle      list.List[*Session]
	shared    []*Session          // the linked ones, when the server is shared
	sharing   int                 // and with those that aren't linked any more
	spares    []*Session          // those that are connected and untouched
	warming   list.List[*Session] // those that are connecting
}

// scope is what is known of one scope while any session of it is open.
type scope struct {
	members map[*Session]struct{}
	idle    list.List[*Session]
	tally   tally
}

// Group returns what is known of a server, nil when no session of it is open.
func (st *State) Group(d Digest) *Group { return st.groups[d] }

// Groups calls yield with every server that has a session.
func (st *State) Groups(yield func(*Group) bool) {
	for _, g := range st.groups {
		if !yield(g) {
			return
		}
	}
}

// Members calls yield with every open session of the server, of which a nil Group has
// none.
func (g *Group) Members(yield func(*Session) bool) {
	if g == nil {
		return
	}
	for s := range g.members {
		if !yield(s) {
			return
		}
	}
}

// All calls yield with every open session.
func (st *State) All(yield func(*Session) bool) {
	for _, g := range st.groups {
		for s := range g.members {
			if !yield(s) {
				return
			}
		}
	}
}

// InScope calls yield with every open session of a scope.
func (st *State) InScope(name string, yield func(*Session) bool) {
	if sc := st.scopes[name]; sc != nil {
		for s := range sc.members {
			if !yield(s) {
				return
			}
		}
	}
}

// ActionKind is what must be done.
type ActionKind uint8

// The kinds of actions.
const (
	Connect ActionKind = iota // begin the connect of Session; its end is an event
	Abort                     // end the connect of Session early
	Close                     // close what there is of Session; its end is the event Closed
	Wake                      // call Expire, which says when it is to be called again
	Own                       // give Session an Owner: the State began it for Caller
	Probe                     // ask Session whether it answers
	HoldOff                   // report that the server of Session is held off, for Pause
	Try                       // report that it is tried although it was held off
	Trust                     // report that the server called Label is trusted again
)

// Action is work that an event leaves to be done once the lock is released. The
// session of one has an Owner by then: who takes the actions gives it one under the
// same hold of the lock, if who called the event hasn't.
type Action struct {
	Do      ActionKind
	Session *Session
	Label   string
	Pause   time.Duration
}

// Actions ends an event, and returns what is to be done since it was last called, in
// order; nil when there is nothing. It is called before the lock is released.
func (st *State) Actions() []Action {
	st.dispatch()
	a := st.actions
	st.actions = nil
	return a
}

func (st *State) act(do ActionKind, s *Session) {
	st.actions = append(st.actions, Action{Do: do, Session: s})
}

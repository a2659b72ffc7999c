package mcppool

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/fairqueue"
	"github.com/mcppool/mcppool/internal/idle"
	"github.com/mcppool/mcppool/internal/redact"
	"github.com/mcppool/mcppool/internal/turn"
)

// session is one connection of one (server, scope): for stdio, one process
// tree. Its life is
//
//	queued ──▶ connecting ──▶ live ──▶ closing ──▶ closed
//	   └──────────┴─────────────────────▲
//
// and besides it is linked or not: a linked session is where calls find it, in
// Pool.sessions or, for a shared server, in its group. It is unlinked before it
// is closed, and never linked again. One-shot sessions are never linked, and
// spares not before they are handed out. An unlinked session is closed by the
// last borrower that leaves, or at once when it is killed.
//
// All changes of state go through the methods below that end in Locked; the
// work that must follow outside the lock is started by them as goroutines that
// Pool.wg waits for.
type session struct {
	pool   *Pool
	id     string // never used twice
	srv    Server // the pool's own copy
	label  string // srv.String()
	group  *serverGroup
	opened moment
	values context.Context // the values of the ctx of the caller that began it, until it is connected
	hurry  time.Time       // that caller's deadline; zero for none

	// admitted is closed when the session leaves the queue; nil if it never was
	// in it.
	admitted chan struct{}
	// ready is closed once the connect has ended. Before that happens, either
	// client and lost are set, or connectErr is.
	ready      chan struct{}
	client     Client
	lost       <-chan struct{} // client.Done()
	connectErr error
	// killed is closed when the session is closed under its borrowers; cause,
	// which says why, is set before.
	killed chan struct{}
	cause  error
	// stale is set when the session was unlinked: no new borrower.
	stale atomic.Bool
	// suspect is set when a call was given up: the next borrower looks first
	// whether the server answers.
	suspect   atomic.Bool
	current   current
	lastErr   atomic.Pointer[error] // of a call
	info      *mcp.InitializeResult // what the server said of itself; set before ready is closed
	showInfo  sync.Once
	shownInfo *mcp.InitializeResult // info without secrets; set by infoToShow

	// The fields below are protected by pool.mu.

	key           key
	scope         *scopeGroup // nil without a scope
	state         sessionState
	linked        bool
	oneShot       bool
	shared        bool
	spare         bool
	refill        bool                    // its server wants spares, which are seen to when it is given back
	process       bool                    // it counts in the tallies once it has started
	attempt       backoff.Attempt[digest] // to start the server
	ran           bool                    // it has started
	inFlight      int                     // borrowers, waiting ones included
	turns         turn.Line               // who may call: one borrower, and the others wait in order
	cancelConnect context.CancelFunc      // while connecting
	reason        CloseReason             // of the unlinking, or of the kill if that came first
	calls         uint64
	recycleAt     moment // when it is too old; zero for never
	heavy         bool   // it uses too much memory
	idle          idle.Entry[*session]
	queued        moment                    // when it came into the queue
	place         *fairqueue.Item[*session] // in the queue; nil when it isn't
	waitsFor      limit
}

type sessionState uint8

const (
	stateQueued sessionState = iota
	stateConnecting
	stateLive
	stateClosing
	stateClosed
)

func (s sessionState) String() string {
	return [...]string{"queued", "connecting", "live", "closing", "closed"}[s]
}

// serverGroup is what the pool knows of one configuration while any session of
// it is open.
type serverGroup struct {
	digest    digest
	command   digest // of command and args alone, for CloseCommand
	members   map[*session]struct{}
	tally     tally
	exclusive bool
	shared    []*session // the linked ones, when the server is shared
	spares    []*session // those that are connected and untouched
	starting  int        // spares that are connecting
	redact    *redact.Redactor
}

// scopeGroup is what the pool knows of one scope while any session of it is open.
type scopeGroup struct {
	members map[*session]struct{}
	tally   tally
}

// newSessionLocked makes the session of k, or a spare, borrowed once for the
// caller unless it is a spare. It begins its connect, or queues it when a limit is
// reached; it fails when the server is held off, or the queue is full. The caller
// must hold p.mu.
func (p *Pool) newSessionLocked(ctx context.Context, k key, srv *Server, spare bool) (*session, error) {
	if err := srv.validate(); err != nil {
		return nil, err // before anything makes room for it
	}
	now := p.now()
	label := srv.base() + "-" + shortHex(k.server)
	if err := p.heldOffLocked(k.server, label); err != nil {
		return nil, err
	}
	g := p.servers[k.server]
	if g == nil {
		g = &serverGroup{digest: k.server, command: commandDigestOf(srv), members: make(map[*session]struct{})}
	}
	g.exclusive = srv.Exclusive
	process := !srv.IsHTTP()
	full, value := limitNone, 0
	if process {
		full, value = p.fullLocked(g, p.scopes[k.scope])
	}
	switch {
	case full != limitNone && spare:
		return nil, p.busyLocked(full, value)
	case full != limitNone && p.limits.MaxWaiting > 0 && p.waiting >= p.limits.MaxWaiting:
		return nil, p.busyLocked(limitWaiting, p.limits.MaxWaiting)
	}
	p.watchLocked()
	p.servers[k.server] = g
	p.lastID++
	hurry, _ := ctx.Deadline()
	s := &session{
		pool:    p,
		id:      sessionID(p.id, p.lastID),
		key:     k,
		srv:     srv.clone(),
		label:   label,
		group:   g,
		opened:  now,
		values:  context.WithoutCancel(ctx),
		hurry:   hurry,
		ready:   make(chan struct{}),
		killed:  make(chan struct{}),
		process: process,
		spare:   spare,
	}
	s.idle.Value = s
	if g.redact == nil {
		g.redact = redact.New(redact.Source{Args: s.srv.Args, Env: s.srv.Env, URL: s.srv.URL, Header: s.srv.Header})
	}
	g.members[s] = struct{}{}
	p.open++
	p.states[stateQueued]++
	p.connects++
	if spare {
		g.starting++
	} else {
		s.inFlight = 1
		p.assignLocked(s, k, srv)
	}
	if full != limitNone {
		p.waiting++
		p.enqueueLocked(s, k.scope)
	} else {
		p.startLocked(s)
	}
	return s, nil
}

// assignLocked gives s its key, and makes it known to calls if it is to be kept.
// The caller must hold p.mu.
func (p *Pool) assignLocked(s *session, k key, srv *Server) {
	s.key = k
	s.shared = srv.Shared
	s.refill = srv.Spares > 0
	s.turns.Overlap = srv.Concurrent
	if k.scope != "" {
		sc := p.scopes[k.scope]
		if sc == nil {
			sc = &scopeGroup{members: make(map[*session]struct{}, 1)}
			p.scopes[k.scope] = sc
		}
		sc.members[s] = struct{}{}
		s.scope = sc
		if s.ran {
			sc.tally.processes++ // a spare, which runs already
		}
	}
	switch {
	case srv.IsHTTP(), k.scope == "" && !srv.Shared:
		s.oneShot = true
		return
	case s.shared:
		s.group.shared = append(s.group.shared, s)
	default:
		p.sessions[k] = s
	}
	s.linked = true
	p.kept++
	p.idle.Join(&s.idle, p.opts.idleTimeoutOf(srv))
}

// startLocked begins the connect of s. The caller must hold p.mu.
func (p *Pool) startLocked(s *session) {
	p.moveLocked(s, stateConnecting)
	if s.process {
		p.starting++
	}
	if !s.spare {
		s.setLifetime()
	}
	p.tryLocked(s)
	ctx, cancel := p.connectContext(s.values)
	s.cancelConnect = cancel
	p.wg.Add(1)
	go p.connect(ctx, s)
}

// unlinkLocked takes s out of where calls find it. It is closed once nobody
// borrows it. The caller must hold p.mu.
func (p *Pool) unlinkLocked(s *session, why CloseReason) {
	if s.reason == "" {
		s.reason = why
		if why == CloseEvicted || why == CloseLRU {
			p.evicted++
		}
		if why == CloseCrashed && s.state == stateLive {
			p.diedLocked(s)
		}
	}
	switch {
	case s.linked && s.shared:
		i := slices.Index(s.group.shared, s)
		s.group.shared = slices.Delete(s.group.shared, i, i+1)
		p.unfileLocked(s, &p.idle)
	case s.linked:
		if p.sessions[s.key] != s {
			panic("bug: a linked session isn't the one of its key")
		}
		delete(p.sessions, s.key)
		p.unfileLocked(s, &p.idle)
	case s.spare:
		p.dropSpareLocked(s)
	}
	p.settleLocked(s)
}

// unfileLocked ends the keeping of s. The caller must hold p.mu.
func (p *Pool) unfileLocked(s *session, list *idle.Lists[*session]) {
	if s.linked {
		s.linked = false
		p.kept--
	}
	s.stale.Store(true)
	s.turns.MoveOn()
	list.Leave(&s.idle)
}

// killLocked closes s now, under its borrowers, whose calls fail with cause.
// The caller must hold p.mu.
func (p *Pool) killLocked(s *session, cause error, why CloseReason) {
	if s.state >= stateClosing {
		return // too late: whoever closes it said why
	}
	if s.cause == nil {
		s.cause = cause
		close(s.killed)
	}
	p.unlinkLocked(s, why)
	p.settleLocked(s)
}

// settleLocked moves an unlinked session on: nobody borrows it any more, or it
// was killed, so it is closed. The caller must hold p.mu.
func (p *Pool) settleLocked(s *session) {
	if s.linked || s.spare || (s.inFlight > 0 && s.cause == nil) {
		return
	}
	switch s.state {
	case stateQueued:
		// Nothing of it is there yet.
		p.waiting -= s.inFlight
		p.dequeueLocked(s)
		s.connectErr = cmp.Or(s.cause, errStale)
		p.moveLocked(s, stateClosing)
		close(s.ready)
		p.closedLocked(s)
	case stateConnecting:
		// The connect's own goroutine closes what it may still bring up.
		p.moveLocked(s, stateClosing)
		s.cancelConnect()
	case stateLive:
		p.moveLocked(s, stateClosing)
		p.wg.Go(func() {
			p.closeSession(s)
		})
	}
}

// moveLocked is the only writer of a session's state, and keeps the counts that
// follow from it. The caller must hold p.mu.
func (p *Pool) moveLocked(s *session, to sessionState) {
	if to <= s.state || to == stateClosed && (s.state != stateClosing || s.linked || s.spare) {
		panic("bug: a session goes from " + s.state.String() + " to " + to.String())
	}
	from := s.state
	s.state = to
	p.states[from]--
	if to != stateClosed {
		p.states[to]++
	}
	if !s.process {
		return
	}
	s.tallies(func(t *tally) {
		switch {
		case to == stateConnecting:
			t.processes++
		case to == stateClosing && s.ran:
			t.ending++
		case to == stateClosed && s.ran:
			t.processes--
			t.ending--
		}
	})
	s.ran = s.ran || to == stateConnecting
}

// closedLocked forgets s, nothing of which is left. The caller must hold p.mu.
func (p *Pool) closedLocked(s *session) {
	p.moveLocked(s, stateClosed)
	delete(s.group.members, s)
	if len(s.group.members) == 0 {
		delete(p.servers, s.group.digest)
	}
	if s.scope != nil {
		delete(s.scope.members, s)
		if len(s.scope.members) == 0 {
			delete(p.scopes, s.key.scope)
		}
	}
	p.open--
	p.closes[s.reason]++
	if p.closed && p.open == 0 {
		close(p.empty)
	}
	p.placeFreeLocked(s.group, s.scope)
}

// isLost reports whether a live session's connection is gone.
func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

func (s *session) isKilled() bool {
	select {
	case <-s.killed:
		return true
	default:
		return false
	}
}

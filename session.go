package mcppool

import (
	"context"
	"sync/atomic"
	"time"
)

// session is one connection of one (server, scope): for stdio, one process
// tree. Its life is
//
//	connecting ──▶ live ──▶ closing ──▶ closed
//	     └───────────────────▲
//
// and besides it is linked or not: a linked session is in Pool.sessions, where
// calls find it. It is unlinked before it is closed, and never linked again.
// One-shot sessions are never linked. An unlinked session is closed by the last
// borrower that leaves, or at once when it is killed.
//
// All changes of state go through the methods below that end in Locked; the
// work that must follow outside the lock is started by them as goroutines that
// Pool.wg waits for.
type session struct {
	pool    *Pool
	id      string // never used twice
	key     key
	srv     Server // the pool's own copy
	label   string // srv.String()
	oneShot bool
	opened  time.Time
	hurry   time.Time // the deadline of the caller that began it; zero for none

	// callLock is held during a call. It is a channel so that waiting for it can
	// be given up; the runtime hands it over first come, first served.
	callLock chan struct{}
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

	// The fields below are protected by pool.mu.

	state         sessionState
	linked        bool
	inFlight      int                // borrowers, waiting ones included
	cancelConnect context.CancelFunc // while connecting
	reason        CloseReason        // of the unlinking, or of the kill if that came first
	calls         uint64
	lastUsed      time.Time
	group         *serverGroup
	idle          idleLink
}

type sessionState uint8

const (
	stateConnecting sessionState = iota
	stateLive
	stateClosing
	stateClosed
)

func (s sessionState) String() string {
	return [...]string{"connecting", "live", "closing", "closed"}[s]
}

// serverGroup is what the pool knows of one configuration while any session of
// it is open.
type serverGroup struct {
	digest  digest
	command digest // of command and args alone, for CloseCommand
	members map[*session]struct{}
}

// newSessionLocked makes a session in state connecting, starts its connect, and
// borrows it once for the caller. The caller must hold p.mu.
func (p *Pool) newSessionLocked(ctx context.Context, k key, srv *Server) *session {
	g := p.servers[k.server]
	if g == nil {
		g = &serverGroup{digest: k.server, command: commandDigestOf(srv), members: make(map[*session]struct{})}
		p.servers[k.server] = g
	}
	p.lastID++
	hurry, _ := ctx.Deadline()
	ctx, cancel := p.connectContext(ctx)
	s := &session{
		pool:          p,
		id:            sessionID(p.id, p.lastID),
		key:           k,
		srv:           srv.clone(),
		label:         srv.base() + "-" + shortHex(k.server),
		oneShot:       k.scope == "" || srv.IsHTTP(),
		opened:        time.Now(),
		hurry:         hurry,
		callLock:      make(chan struct{}, 1),
		ready:         make(chan struct{}),
		killed:        make(chan struct{}),
		inFlight:      1,
		cancelConnect: cancel,
		group:         g,
	}
	g.members[s] = struct{}{}
	p.joinScopeLocked(s)
	p.open++
	p.states[stateConnecting]++
	p.connects++
	if !s.oneShot {
		s.linked = true
		s.idle.class = p.idle.join(p.opts.idleTimeout())
		p.sessions[k] = s
	}
	p.wg.Add(1)
	go p.connect(ctx, s)
	return s
}

// unlinkLocked takes s out of where calls find it. It is closed once nobody
// borrows it. The caller must hold p.mu.
func (p *Pool) unlinkLocked(s *session, why CloseReason) {
	if s.reason == "" {
		s.reason = why
	}
	if s.linked {
		if p.sessions[s.key] != s {
			panic("bug: a linked session isn't the one of its key")
		}
		delete(p.sessions, s.key)
		s.linked = false
		s.stale.Store(true)
		p.idle.remove(s)
		p.idle.leave(s.idle.class)
	}
	p.settleLocked(s)
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
	if s.linked || (s.inFlight > 0 && s.cause == nil) {
		return
	}
	switch s.state {
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

// moveLocked is the only writer of a session's state. The caller must hold p.mu.
func (p *Pool) moveLocked(s *session, to sessionState) {
	if to <= s.state || to == stateClosed && (s.state != stateClosing || s.linked) {
		panic("bug: a session goes from " + s.state.String() + " to " + to.String())
	}
	p.states[s.state]--
	s.state = to
	if to != stateClosed {
		p.states[to]++
	}
}

// closedLocked forgets s, nothing of which is left. The caller must hold p.mu.
func (p *Pool) closedLocked(s *session) {
	p.moveLocked(s, stateClosed)
	delete(s.group.members, s)
	if len(s.group.members) == 0 {
		delete(p.servers, s.group.digest)
	}
	p.leaveScopeLocked(s)
	p.open--
	p.closes[s.reason]++
	if p.closed && p.open == 0 {
		close(p.empty)
	}
}

// joinScopeLocked makes s known to CloseScope. The caller must hold p.mu.
func (p *Pool) joinScopeLocked(s *session) {
	scope := s.key.scope
	if scope == "" {
		return
	}
	members := p.scopes[scope]
	if members == nil {
		members = make(map[*session]struct{}, 1)
		p.scopes[scope] = members
	}
	members[s] = struct{}{}
}

func (p *Pool) leaveScopeLocked(s *session) {
	members := p.scopes[s.key.scope]
	delete(members, s)
	if len(members) == 0 {
		delete(p.scopes, s.key.scope)
	}
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

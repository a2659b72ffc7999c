package mcppool

import (
	"context"
	"errors"
	"time"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// No generation counter: a session is known to its server's group from the moment
// its connect begins, so that it is its own generation. A close finds and marks every
// connect under way; the connect's end sees the mark under the same lock under which
// it would publish. Nothing has to be remembered of a configuration that has no
// session, and a borrower that moves from a replaced session to a new one does so
// without giving up the lock, so that no close passes unseen in between.

// CloseServer closes every session of exactly this configuration, those that
// are connecting, one-shot or busy included: calls under way fail at once with
// [ErrServerClosed]. Calls that begin afterwards connect anew. It doesn't wait
// for the processes to end.
func (p *Pool) CloseServer(srv Server) {
	d := digestOf(&srv)
	p.mu.Lock()
	defer p.unlock()
	if g := p.state.Group(d); g != nil {
		p.state.KillAll(g, ErrServerClosed, reason(ReasonServerClosed), p.now())
	}
}

// CloseCommand is [Pool.CloseServer] for every configuration with the same
// command and args (or the same URL), whatever its env, dir and headers.
func (p *Pool) CloseCommand(srv Server) {
	is := identityOf(&srv)
	d := is.CommandDigest()
	p.mu.Lock()
	defer p.unlock()
	for g := range p.state.Groups {
		if recordOf(g).command == d {
			p.state.KillAll(g, ErrServerClosed, reason(ReasonServerClosed), p.now())
		}
	}
}

// CloseScope closes every session of a scope, on all servers, as
// [Pool.CloseServer] does, and removes its folders (see [DirPerScope]): the conversation
// was deleted. The empty scope has none.
func (p *Pool) CloseScope(scope string) {
	p.mu.Lock()
	defer p.unlock()
	p.state.KillScope(scope, ErrServerClosed, reason(ReasonScopeClosed), p.now())
	p.dirs.EndScope(scope)
}

// CloseSession closes one session as [Pool.CloseServer] does. It reports whether
// there was one of that id.
func (p *Pool) CloseSession(id string) bool {
	p.mu.Lock()
	defer p.unlock()
	for s := range p.state.All {
		if connOf(s).id == id && s.Status() < poolstate.Closing {
			p.state.Kill(s, ErrServerClosed, reason(ReasonByID), p.now())
			return true
		}
	}
	return false
}

// RetireServer closes the idle sessions of exactly this configuration now, and
// its busy ones when their call returns. Calls that wait for a busy one get a
// new session.
func (p *Pool) RetireServer(srv Server) {
	d := digestOf(&srv)
	p.mu.Lock()
	defer p.unlock()
	g := p.state.Group(d)
	if g == nil {
		return
	}
	for s := range g.Members {
		if s.Status() > poolstate.Queued { // what hasn't begun can't be out of date
			p.state.Retire(s, ErrServerClosed, reason(ReasonRetired), p.now())
		}
	}
}

// CloseIdle closes the sessions that have been idle for at least olderThan,
// rather than at the end of their idle time. Zero closes all idle ones.
func (p *Pool) CloseIdle(olderThan time.Duration) {
	limit := p.now() - max(olderThan, 0)
	for more := true; more; {
		p.mu.Lock()
		more = p.state.UnlinkIdle(limit, p.now())
		p.unlock()
	}
}

// closeConn ends what there is of c, which is closing, and forgets it.
func (p *Pool) closeConn(c *conn) {
	begun := p.now()
	defer func() { p.connClosed(c, p.now()-begun) }() // whatever BeforeClose does
	if c.client != nil {
		c.close()
	}
}

// connClosed forgets c, whose connection is closed.
func (p *Pool) connClosed(c *conn, took time.Duration) {
	if c.client != nil {
		p.explainDeath(c)
	}
	closeErr, left := c.left(c.closeErr)
	p.mu.Lock()
	if left && len(p.left) < maxLeft {
		p.left = append(p.left, closeErr)
	}
	now := p.now()
	why := CloseReason(c.st.Reason())
	p.state.Closed(c.st, now)
	p.unlock()
	if c.opened && p.trace.SessionClosed != nil {
		<-c.ready // the connect reports the opening, though c may be killed meanwhile
		closed := SessionClosedInfo{Origin: c.borrowedOrigin(), Reason: why, Lived: now - c.st.Opened, Took: took}
		closed.Err = errors.Join(c.saveErr, closeErr)
		if d, ok := c.client.(*defaultClient); ok {
			closed.Exit = d.exit()
		}
		p.trace.SessionClosed(context.Background(), closed)
	}
}

// maxLeft bounds what is remembered of processes that couldn't be ended.
const maxLeft = 64

// close ends the connection, after BeforeClose.
func (c *conn) close() {
	deadline := time.Now().Add(c.pool.opts.CloseTimeout)
	defer func() {
		err := c.safely("Client.Close", func() error {
			if d, ok := c.client.(*defaultClient); ok {
				return d.closeBy(deadline)
			}
			return c.client.Close()
		})
		c.closeErr = publicError(c.server.redact, err)
	}()
	c.saveErr = c.beforeClose()
}

// beforeClose runs the caller's part of a close, if the server can take it.
func (c *conn) beforeClose() error {
	c.pool.mu.Lock()
	why := CloseReason(c.st.Reason())
	f, _ := c.st.Policy().Owner.(func(context.Context, *Session) error)
	c.pool.mu.Unlock()
	if f == nil || !c.opened || isClosed(c.lost) || why == ReasonWedged || c.current.UnderWay() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.pool.opts.CloseGrace)
	defer cancel()
	l := ownLease(c, c.st.Key.Scope)
	defer l.Release()
	return publicError(c.server.redact, c.safely("Policy.BeforeClose", func() error { return f(ctx, l) }))
}

// explainDeath replaces what Backoff knows of the death of c by what its client does.
func (p *Pool) explainDeath(c *conn) {
	if p.opts.Backoff.Failures <= 0 || !c.st.Lost() {
		return
	}
	err := c.lostError(poolstate.ErrDiedSoon)
	p.mu.Lock()
	p.state.Explain(c.st, err)
	p.mu.Unlock()
}

// endLeavings sees to it that there are no containers and folders of the pool but those
// that a LeftError says.
func (p *Pool) endLeavings(last time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), last)
	defer cancel()
	containers := p.containers.End(ctx)
	dir, err := p.dirs.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, left := range [...]LeftError{{Err: containers}, {Dir: dir, Err: err}} {
		if left.Server = "the pool"; left.Err != nil {
			p.left = append(p.left, &left)
		}
	}
}

// CloseReason says why a session ended.
type CloseReason string

// The reasons. Exactly one is counted for every session.
const (
	ReasonOneShot      CloseReason = "one-shot"      // it was opened for one call
	ReasonIdle         CloseReason = "idle"          // unused for IdleTimeout, or CloseIdle
	ReasonLRU          CloseReason = "lru"           // least recently used when there were more than MaxSessions
	ReasonCrashed      CloseReason = "crashed"       // the connection was lost
	ReasonServerClosed CloseReason = "server closed" // CloseServer, CloseCommand, or a Check that said no
	ReasonByID         CloseReason = "closed by id"  // CloseSession
	ReasonRetired      CloseReason = "retired"       // RetireServer
	ReasonShutdown     CloseReason = "shutdown"      // Shutdown or Close
	ReasonEvicted      CloseReason = "evicted"       // another call needed its place at a limit
	ReasonRecycled     CloseReason = "recycled"      // too old, too many calls or too much memory
	ReasonStartFailed  CloseReason = "start failed"  // it never came up
	ReasonAbandoned    CloseReason = "abandoned"     // nobody waited for its connect any longer
	ReasonTimeout      CloseReason = "timeout"       // a call ran past its deadline
	ReasonCancelled    CloseReason = "cancelled"     // a call was cancelled
	ReasonScopeClosed  CloseReason = "scope closed"  // CloseScope
	ReasonWedged       CloseReason = "wedged"        // it didn't answer a probe
	ReasonDiscarded    CloseReason = "discarded"     // its holder gave it up
	ReasonLeaked       CloseReason = "leaked"        // its lease was dropped without a release
	ReasonPanicked     CloseReason = "panicked"      // the client or the func given to Do panicked
)

// reason is a CloseReason as the state has it.
func reason(why CloseReason) poolstate.Reason { return poolstate.Reason(why) }

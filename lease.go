package mcppool

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Session is a session that is borrowed by [Pool.Do] or [Pool.Acquire]: as long
// as it is held, nobody else's calls reach it, unless its server is Concurrent.
// Its methods are safe for concurrent use; calls made at the same time go out at
// the same time.
type Session struct{ *lease }

// lease is what a Session holds. It doesn't refer to the Session, so that one
// that is dropped without a release can be noticed.
type lease struct {
	p *Pool
	s *session

	mu    sync.Mutex // protects the fields below
	ended bool
	why   CloseReason // why the session must not serve others, if so
}

// errEnded is a misuse: the Session was kept beyond its borrow.
var errEnded = errors.New("mcppool: Session used after it was given back")

// Acquire borrows the session of (srv, scope) as [Pool.CallTool] does, until it
// is released; ctx bounds the wait for it, not the borrow. Each Acquire that
// succeeds is to be followed by one Release or Discard. One that is dropped
// without is reported in the log as an error and its session closed, once the
// garbage collector has found it.
func (p *Pool) Acquire(ctx context.Context, srv Server, scope string) (*Session, error) {
	s, err := p.borrow(ctx, &srv, scope, nil)
	if err != nil {
		return nil, wrap("session", &srv, phaseQueue, err)
	}
	l := &Session{&lease{p: p, s: s}}
	runtime.AddCleanup(l, (*lease).reclaim, l.lease)
	return l, nil
}

// Release gives the session back; its state is kept for the next borrower. It is
// not to be called while a method runs. Further calls do nothing.
func (l *Session) Release() { l.lease.end("") }

// Discard gives the session back to be closed, since its state is in doubt. It is
// otherwise like Release.
func (l *Session) Discard() { l.lease.end(CloseDiscarded) }

// reclaim ends a lease that was dropped.
func (l *lease) reclaim() {
	if l.end(CloseLeaked) {
		l.p.log(slog.LevelError, "mcppool: a session was acquired and never released", l.s)
	}
}

// end gives the session back, once; it reports whether it did.
func (l *lease) end(why CloseReason) bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.ended = true
	if l.why != "" {
		why = l.why
	}
	l.mu.Unlock()
	l.p.giveBack(l.s, why, outcomeNone)
	return true
}

// Do borrows the session of (srv, scope) as [Pool.CallTool] does and runs f with
// it: calls that f makes are not interleaved with others of the scope. The ctx
// that f gets ends with the caller's, and when the session is closed under it.
// Do returns f's error as it is; errors of its own came before f ran. The
// [*Session] is f's until it returns, unless f releases it before.
func (p *Pool) Do(ctx context.Context, srv Server, scope string, f func(context.Context, *Session) error) error {
	s, err := p.borrow(ctx, &srv, scope, nil)
	if err != nil {
		return wrap("session", &srv, phaseQueue, err)
	}
	l := &Session{&lease{p: p, s: s}}
	why := ClosePanicked // unless f returns
	defer func() { l.end(why) }()
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	err = f(ctx, l)
	why = ""
	return err
}

// ID names the session in logs and [Pool.Sessions]. It is never used again.
func (l *Session) ID() string { return l.s.id }

// Done is closed when the session is closed under its holder, by
// [Pool.CloseServer] and its like.
func (l *Session) Done() <-chan struct{} { return l.s.killed }

// CallTool calls a tool within the borrow. The call's Scope is that of the
// borrow, whatever it says. Errors are those of [Pool.CallTool]; after one that
// costs the session, every further call fails with [ErrSessionLost].
func (l *Session) CallTool(ctx context.Context, call Call) (*mcp.CallToolResult, error) {
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err = l.usable(ctx); err == nil {
		err = ask(call.Check)
	}
	if err != nil {
		l.p.countRefused()
		return nil, &opError{op: toolOp(call.Tool), server: l.s.label, phase: phaseQueue, err: err}
	}
	done := callEnd{how: outcomeOther} // unless the client returns
	defer func() {
		l.p.mu.Lock()
		l.p.countLocked(l.s, done.how)
		l.p.mu.Unlock()
		l.spoil(done.why)
	}()
	var res *mcp.CallToolResult
	res, err, done = l.s.call(ctx, &req, &call)
	return res, err
}

// ListTools lists all tools, as [Pool.ListTools] does.
func (l *Session) ListTools(ctx context.Context) ([]mcp.Tool, error) {
	var tools []mcp.Tool
	err := l.run(ctx, "tools/list", func() (err error) {
		tools, err = l.s.listTools(ctx)
		return err
	})
	return tools, err
}

// run makes one request within the borrow.
func (l *Session) run(ctx context.Context, op string, request func() error) error {
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err := l.usable(ctx); err != nil {
		return &opError{op: op, server: l.s.label, phase: phaseQueue, err: err}
	}
	err := request()
	if err == nil {
		return nil
	}
	err, done := l.s.end(ctx, op, err)
	l.spoil(done.why)
	return err
}

// spoil notes why the session must not serve others, if so.
func (l *lease) spoil(why CloseReason) {
	if why == "" {
		return
	}
	l.mu.Lock()
	l.why = why
	l.mu.Unlock()
}

// usable looks whether a request may be made: the lease is held, and the session
// answers.
func (l *lease) usable(ctx context.Context) error {
	l.mu.Lock()
	ended, why := l.ended, l.why
	l.mu.Unlock()
	switch {
	case ended:
		return errEnded
	case l.s.isKilled():
		return l.s.cause
	case why != "", l.s.isLost():
		return l.s.lostError(nil)
	case ctx.Err() != nil:
		return ctx.Err()
	case !l.s.suspect.Load():
		return nil
	}
	err := l.s.reassure(ctx)
	if err == errWedged || err == errDead {
		// The lease is of this session and its state, so that another one
		// wouldn't do.
		l.spoil(CloseWedged)
		return l.s.lostError(err)
	}
	return err
}

// ListTools lists the tools of srv, all pages of them, as the session of scope
// sees them. It borrows the session as [Pool.CallTool] does. A server whose
// cursor doesn't move on gets an error rather than a loop.
func (p *Pool) ListTools(ctx context.Context, srv Server, scope string) ([]mcp.Tool, error) {
	s, err := p.borrow(ctx, &srv, scope, nil)
	if err != nil {
		return nil, wrap("tools/list", &srv, phaseQueue, err)
	}
	l := &Session{&lease{p: p, s: s}}
	why := ClosePanicked // unless the client returns
	defer func() { l.end(why) }()
	tools, err := l.ListTools(ctx)
	why = ""
	return tools, err
}

// whileAlive is a ctx that also ends when s is killed, with the reason as its
// cause. The returned func ends it and waits for the goroutine that watches.
func (s *session) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.killed:
			cancel(s.cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

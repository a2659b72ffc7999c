package mcppool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/container"
	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/label"
	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/outcome"
	"github.com/mcppool/mcppool/internal/poolstate"
	"github.com/mcppool/mcppool/internal/scratch"
)

// Pool keeps sessions with MCP servers between calls. It is made by [New], is
// safe for concurrent use, and must be closed.
type Pool struct {
	opts  Options         // resolved; never changes
	born  time.Time       // the beginning of its clock
	id    string          // prefix of its sessions' ids
	trace Trace           // of the options and their Logger; its funcs are nil without one, and don't panic
	life  context.Context // ends when the pool takes no more calls
	end   context.CancelFunc
	done  <-chan struct{} // of life
	eras  mcpconn.Eras
	// traffic counts the bytes of all processes.
	traffic mcpconn.Traffic
	// waits and waited are the waits of Stats that have ended, and their nanoseconds.
	waits  atomic.Uint64
	waited atomic.Int64
	web    httpconn.Web // connections to servers at a URL
	known  keyed.Known  // the configurations of open sessions

	containers container.Host
	dirs       scratch.Dirs
	// empty is closed once the pool is closed and has no session left.
	empty chan struct{}
	// wg counts the goroutines of the pool: connects, closes and those of reaper.go.
	// It is added to only under mu, and only while a session is open or the pool is,
	// so never once empty is closed.
	wg   sync.WaitGroup
	wake chan struct{} // of the reaper; capacity 1

	mu       sync.Mutex // protects the fields below, and all that state holds
	state    *poolstate.State
	closed   bool
	emptied  bool           // empty is closed
	reaping  bool           // the reaper runs
	watching bool           // the goroutines that look at sessions from time to time run
	outcomes outcome.Counts // tool calls ended
	left     []error        // of sessions that left processes behind
	names    label.Book     // which configuration is called by its plain name
}

// New makes a pool; nil options are the defaults. It starts nothing. It fails
// with a [*ConfigError] when an option has no meaning.
func New(opts *Options) (*Pool, error) {
	p := &Pool{
		born:  time.Now().Add(-1), // so that no moment of its life is zero
		opts:  opts.resolved(),
		empty: make(chan struct{}),
		wake:  make(chan struct{}, 1),
	}
	if err := p.opts.validate(); err != nil {
		return nil, err
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.done = p.life.Done()
	p.state = poolstate.New(p.opts.stateConfig(), poolstate.Limits(p.opts.Limits))
	p.trace = p.traceOf(&p.opts)
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	p.id = hex.EncodeToString(id[:])
	p.containers.Pool, p.containers.Base, p.containers.CLIs = p.id, filepath.Join(p.opts.ScratchDir, "containers"), p.opts.ContainerCLIs
	p.dirs.Pool, p.dirs.Base = p.id, filepath.Join(p.opts.ScratchDir, "folders")
	return p, nil
}

// moment is a time by the pool's own clock: how long after its making. It is
// cheaper to read and to compare than a time.Time, and zero is before everything.
type moment = poolstate.Moment

func (p *Pool) now() moment { return time.Since(p.born) }

// wall is m as others know it; the zero time for zero.
func (p *Pool) wall(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return p.born.Add(m).Round(0)
}

// unlock releases p.mu and does what the events under it have left to be done.
func (p *Pool) unlock() {
	actions := p.state.Actions()
	for i := range actions {
		p.prepareLocked(&actions[i])
	}
	if p.closed && !p.emptied && p.state.Open() == 0 {
		p.emptied = true
		close(p.empty)
	}
	p.mu.Unlock()
	for i := range actions {
		p.run(&actions[i])
	}
	for i := range actions { // last, since a hook may end this goroutine
		p.report(&actions[i])
	}
}

// prepareLocked does the part of an action that must not come after the next event.
// The caller must hold p.mu.
func (p *Pool) prepareLocked(a *poolstate.Action) {
	if a.Session != nil && a.Session.Owner == nil {
		p.ownSuccessorLocked(a.Session)
	}
	switch a.Do {
	case poolstate.HoldOff, poolstate.Try:
		a.Label = a.Session.Group.Label
	case poolstate.Connect, poolstate.Close:
		p.wg.Add(1)
	case poolstate.Probe:
		connOf(a.Session).beginProbeLocked()
		p.wg.Add(1)
	case poolstate.Wake:
		p.startReaperLocked()
	}
}

// run does what an event has left to be done.
func (p *Pool) run(a *poolstate.Action) {
	switch a.Do {
	case poolstate.Connect:
		go p.connect(connOf(a.Session))
	case poolstate.Abort:
		connOf(a.Session).abort()
	case poolstate.Close:
		go func() {
			defer p.wg.Done()
			p.closeConn(connOf(a.Session))
		}()
	case poolstate.Probe:
		go func() {
			defer p.wg.Done()
			p.probe(connOf(a.Session))
		}()
	case poolstate.Wake:
		select {
		case p.wake <- struct{}{}:
		default: // it is about to look anyway
		}
	}
}

// report tells the trace what an event has come to.
func (p *Pool) report(a *poolstate.Action) {
	switch a.Do {
	case poolstate.HoldOff:
		p.backoffChanged(a, BackoffWaiting)
	case poolstate.Try:
		p.backoffChanged(a, BackoffTrying)
	case poolstate.Trust:
		p.backoffChanged(a, BackoffOver)
	}
}

// CallTool calls a tool of srv in the session of call.Scope, which it connects
// first when there is none. One deadline, that of ctx, spans waiting for the
// connect, waiting for the session's turn, and the call. Calls of one scope of
// one server go out one at a time, in order of arrival.
//
// The result is the server's, whatever it contains: a tool that failed is a
// result with IsError. Errors are those of the package's list; see
// [SafeToRetry] for which say that nothing was sent. No call is sent twice.
func (p *Pool) CallTool(ctx context.Context, srv Server, call Call) (*mcp.CallToolResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap(toolOp(call.Tool), &srv, phaseStart, err)
	}
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	b := p.newBorrower(ctx, &srv, call.Scope, call.Check)
	c, err := p.borrow(&b)
	for again := true; err == nil; again = false {
		var res *mcp.CallToolResult
		var sent bool
		res, sent, err = p.callIn(ctx, c, &req, &call, again)
		if sent {
			return res, err
		}
		c, err = p.borrowAgain(&b, c)
	}
	p.countRefused()
	return nil, wrap(toolOp(call.Tool), &srv, phaseQueue, err)
}

// callIn makes a call in a borrowed session and gives it back, except when again
// is set and the session was lost before anything was sent: sent is false then,
// and the session still borrowed.
func (p *Pool) callIn(ctx context.Context, c *conn, req *mcp.CallToolRequest, call *Call, again bool) (res *mcp.CallToolResult, sent bool, err error) {
	done := callEnd{why: ReasonPanicked, how: outcome.Other} // unless the client returns
	sent = true
	defer func() {
		if sent {
			p.giveBack(ctx, c, done)
		}
	}()
	res, err, done = c.call(ctx, req, call)
	if err != nil && again && done.how == outcome.NotSent && c.wasLost() {
		sent = false
	}
	return res, sent, err
}

// Do borrows the session of (srv, want.Scope) as [Pool.CallTool] does and runs f with
// it: calls that f makes with it are not interleaved with others of the scope. Those
// that f makes with the pool, in the same scope of srv, would wait for their own end.
// The ctx that f gets ends with the caller's, and when the session is closed under it
// or its connection is lost. Do returns f's error as it is; errors of its own came
// before f ran. The [*Session] is f's until it returns, unless f releases it before.
func (p *Pool) Do(ctx context.Context, srv Server, want Borrow, f func(context.Context, *Session) error) error {
	return p.lend(ctx, &srv, want, "session", func(ctx context.Context, l *Session) error {
		ctx, cancel := l.c.whileAlive(ctx)
		defer cancel()
		return f(ctx, l)
	})
}

// lend runs f with a borrowed session and gives it back.
func (p *Pool) lend(ctx context.Context, srv *Server, want Borrow, op string, f func(context.Context, *Session) error) error {
	b := p.newBorrower(ctx, srv, want.Scope, want.Check)
	c, err := p.borrow(&b)
	if err != nil {
		return wrap(op, srv, phaseQueue, err)
	}
	l := &Session{&lending{p: p, c: c, scope: want.Scope}}
	why := ReasonPanicked // unless f returns
	defer func() { l.lending.end(why) }()
	err = f(ctx, l)
	why = ""
	return err
}

// Acquire borrows the session of (srv, want.Scope) as [Pool.CallTool] does, until it
// is released; ctx bounds the wait for it, not the borrow. Each Acquire that
// succeeds is to be followed by one Release or Discard. One that is dropped
// without is reported in the log as an error and its session closed, once the
// garbage collector has found it.
func (p *Pool) Acquire(ctx context.Context, srv Server, want Borrow) (*Session, error) {
	b := p.newBorrower(ctx, &srv, want.Scope, want.Check)
	c, err := p.borrow(&b)
	if err != nil {
		return nil, wrap("session", &srv, phaseQueue, err)
	}
	return newLease(p, c, want.Scope), nil
}

// Prewarm connects spares of srv, so that there are n, and waits for them. Each
// is handed to the next call that would have to start srv. They are given up
// after the server's idle time, and before anything else when a limit is tight.
// It fails with the first connect's error, with [ErrServerClosed] or [ErrClosed]
// where those ended a connect, with a [*BusyError] where a limit leaves no room,
// and with ctx's error; what is connecting then goes on.
func (p *Pool) Prewarm(ctx context.Context, srv Server, n int) error {
	if err := srv.canSpare(); err != nil {
		return err
	}
	b := p.newBorrower(ctx, &srv, "", nil)
	started, err := p.startSpares(&b, n)
	for _, c := range started {
		select {
		case <-c.ready:
			if err == nil {
				err = c.connectErr
			}
		case <-c.st.Killed():
			return wrap("prewarm", &srv, phaseQueue, p.refusal(&b, c.st.Cause()))
		case <-ctx.Done():
			return wrap("prewarm", &srv, phaseQueue, c.waitError(WaitConnect, p.now()-c.st.Opened, ctx.Err()))
		}
	}
	if err != nil {
		return wrap("prewarm", &srv, phaseQueue, p.refusal(&b, err))
	}
	return nil
}

func (p *Pool) startSpares(b *borrower, n int) (started []*conn, err error) {
	p.mu.Lock()
	defer p.unlock()
	if err := p.checkLocked(b); err != nil {
		return nil, err
	}
	sessions, err := p.state.Prewarm(&b.want, n, p.now())
	for _, s := range sessions {
		if s.Owner == nil {
			p.ownLocked(s, &b.srv, b.ctx)
		}
		started = append(started, connOf(s))
	}
	return started, err
}

// SetLimits replaces the limits. Raised ones let waiting callers go at once;
// lowered ones end nothing that is busy.
func (p *Pool) SetLimits(l Limits) {
	p.mu.Lock()
	defer p.unlock()
	p.state.SetLimits(poolstate.Limits(l), p.now())
}

// Options returns the pool's options with every default filled in, and the limits as
// they are now.
func (p *Pool) Options() Options {
	o := p.opts.resolved() // which copies
	o.Limits = p.Limits()
	return o
}

// Limits returns the limits as they are now.
func (p *Pool) Limits() Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Limits(p.state.Limits())
}

// ResetBackoff forgets the failures of exactly this configuration, so that the
// next call may start it at once.
func (p *Pool) ResetBackoff(srv Server) {
	p.mu.Lock()
	defer p.unlock()
	b := p.newBorrower(context.Background(), &srv, "", nil)
	b.want.Label = srv.String()
	p.state.ResetBackoff(&b.want)
}

// Shutdown refuses new calls and those that still wait with [ErrClosed], closes
// idle sessions, and lets the calls that were sent finish. When ctx
// ends before they have, they are interrupted as by [Pool.Close], and Shutdown
// returns ctx's error, with those of Close. Either way no process, goroutine or timer
// of the pool is left when it returns.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.refuse(func(s *poolstate.Session) { p.state.Retire(s, ErrClosed, reason(ReasonShutdown), p.now()) })
	var err error
	select {
	case <-p.empty:
	default:
		select {
		case <-p.empty:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, p.Close())
}

// Close refuses new calls with [ErrClosed], interrupts those under way, closes
// every session, and returns when no process, goroutine or timer of the pool is
// left. It may be called again, and from several goroutines; each call waits. It
// returns within CloseTimeout and a second, whatever processes do: its error is a
// [*LeftError] for each session whose processes could not be ended, while the pool was
// open or now.
func (p *Pool) Close() error {
	p.refuse(func(s *poolstate.Session) { p.state.Kill(s, ErrClosed, reason(ReasonShutdown), p.now()) })
	last := time.Now().Add(p.opts.CloseTimeout + time.Second) // for what no session has any more
	<-p.empty
	p.wg.Wait()
	p.web.Close()
	p.endLeavings(last)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.left...)
}

// refuse ends the taking of calls, and ends each session that there is.
func (p *Pool) refuse(end func(*poolstate.Session)) {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	p.end()
	p.state.Refuse()
	for s := range p.state.All {
		end(s)
	}
}

package mcppool

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/hook"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// Trace is called with what a pool does, while it does it. Each func may be nil.
// They are called from many goroutines at once, outside the pool's locks; those with
// a call's ctx on the goroutine of that call, to whose time theirs is added. They may
// use and change the pool, but not wait for what they report: no calls in the same
// scope, no Close, no Shutdown. One that panics is reported by Panicked, and nothing
// else comes of it. No argument holds a secret; texts of servers have known secrets
// blanked.
//
// The ctx is that of the call; of a connect one with the values of the call that
// began it; and of what belongs to neither context.Background().
type Trace struct {
	// WaitBegin and WaitEnd: a call can't go on at once. Every Begin has its End.
	WaitBegin func(context.Context, WaitBeginInfo)
	WaitEnd   func(context.Context, WaitEndInfo)

	// ConnectBegin and ConnectEnd: a session is connected, for a spare too.
	// In between a process is started, unless the server has a URL; a second one
	// when a server of unknown era exited because of the question for it.
	ConnectBegin   func(context.Context, ConnectBeginInfo)
	ProcessStarted func(context.Context, ProcessStartedInfo)
	ConnectEnd     func(context.Context, ConnectEndInfo)

	// CallBegin and CallEnd: a tool call is sent and answered, or given up. What
	// happened before is not part of it.
	CallBegin func(context.Context, CallBeginInfo)
	CallEnd   func(context.Context, CallEndInfo)

	// SessionOpened and SessionClosed are called once each for every session that
	// connected.
	SessionOpened func(context.Context, SessionOpenedInfo)
	SessionClosed func(context.Context, SessionClosedInfo)
	// SessionBorrowed and SessionReleased: a caller has a session, and gives it back.
	SessionBorrowed func(context.Context, SessionBorrowedInfo)
	SessionReleased func(context.Context, SessionReleasedInfo)
	// SessionReplaced: a caller goes on to another session, since nothing was sent
	// to this one.
	SessionReplaced func(context.Context, SessionReplacedInfo)

	// BackoffChanged: a server that failed is held off, tried or trusted again
	// (see [Backoff]).
	BackoffChanged func(context.Context, BackoffChangedInfo)

	// Junk is a line of a server's stdout that is no message; at most ten a second
	// are reported. Stderr is a line that a server wrote to its stderr.
	Junk   func(context.Context, JunkInfo)
	Stderr func(context.Context, StderrInfo)

	// Panicked: one of the caller's funcs panicked, and the pool went on.
	Panicked func(context.Context, PanickedInfo)
}

// WaitFor is what a call waits for.
type WaitFor string

const (
	WaitConnect WaitFor = "connect" // the session is being connected
	WaitTurn    WaitFor = "turn"    // another call of the session is under way
	WaitLimit   WaitFor = "limit"   // one of [Limits] is reached
)

// WaitBeginInfo is the beginning of a wait.
type WaitBeginInfo struct {
	Origin
	For WaitFor
}

// WaitEndInfo is the end of a wait.
type WaitEndInfo struct {
	Origin
	For  WaitFor
	Took time.Duration
	Err  error // why the call doesn't go on with this session; nil when it does
}

// ConnectBeginInfo is the beginning of a connect.
type ConnectBeginInfo struct {
	Origin
	Spare bool
}

// ProcessStartedInfo is the start of a server's process.
type ProcessStartedInfo struct {
	Origin
	PID int
}

// ConnectEndInfo is the end of a connect.
type ConnectEndInfo struct {
	Origin
	Spare bool
	Took  time.Duration
	Info  *mcp.InitializeResult // what the server said of itself; nil when it isn't known
	Err   error                 // nil, or why it failed; context.Canceled when it was given up
}

// CallBeginInfo is the beginning of a tool call.
type CallBeginInfo struct {
	Origin
	Tool string
}

// CallEndInfo is the end of a tool call.
type CallEndInfo struct {
	Origin
	Tool      string
	Took      time.Duration
	Outcome   Outcome
	RequestID int64 // of the JSON-RPC request, sent or not; 0 when it isn't known, as over HTTP
	Err       error // as the caller gets it; nil when the tool answered
}

// SessionOpenedInfo is a session that connected.
type SessionOpenedInfo struct {
	Origin
	Spare   bool
	OneShot bool          // it serves one call
	Took    time.Duration // since it was begun, with its wait at a limit
}

// SessionClosedInfo is the end of a session.
type SessionClosedInfo struct {
	Origin
	Reason CloseReason
	Lived  time.Duration // since it was begun
	Took   time.Duration // its close
	Exit   string        // how its process ended, such as "exit status 0"; empty when it has none, or that isn't known
	Err    error         // of its client's Close: what of its processes is left
}

// SessionBorrowedInfo is the beginning of a borrow.
type SessionBorrowedInfo struct{ Origin }

// SessionReleasedInfo is the end of a borrow.
type SessionReleasedInfo struct {
	Origin
	Reason CloseReason // why the session serves nobody else; empty when it goes on
}

// SessionReplacedInfo is a session that a caller leaves for another.
type SessionReplacedInfo struct {
	Origin
	Reason CloseReason
}

// BackoffChangedInfo is a change of how much a server that failed is trusted.
type BackoffChangedInfo struct {
	Origin // Server alone is set
	State  BackoffState
	Pause  time.Duration // of BackoffWaiting
}

// BackoffState is how much a server that failed is trusted.
type BackoffState string

const (
	BackoffWaiting BackoffState = "waiting" // it isn't started before the pause is over
	BackoffTrying  BackoffState = "trying"  // one attempt is under way
	BackoffOver    BackoffState = "over"    // an attempt has held
)

// JunkInfo is a line of stdout that is no message.
type JunkInfo struct {
	Origin
	Line  string // cut to 256 bytes
	Total int    // how many there have been
}

// StderrInfo is a line of stderr.
type StderrInfo struct {
	Origin
	Line string // cut to 4 KiB
}

// PanickedInfo is a panic of one of the caller's funcs.
type PanickedInfo struct {
	Origin        // zero when it isn't known
	Func   string // which, such as "Trace.CallEnd"
	Panic  string // the runtime's own words, or the type of the value, which may hold a secret
	Stack  string
}

// MergeTraces returns one Trace that calls each of several in turn; nil ones are left
// out.
func MergeTraces(traces ...*Trace) *Trace {
	var all Trace
	for _, t := range traces {
		if t != nil {
			all.join(t)
		}
	}
	return &all
}

// join makes t call u as well.
func (t *Trace) join(u *Trace) {
	hook.Join(&t.WaitBegin, u.WaitBegin)
	hook.Join(&t.WaitEnd, u.WaitEnd)
	hook.Join(&t.ConnectBegin, u.ConnectBegin)
	hook.Join(&t.ProcessStarted, u.ProcessStarted)
	hook.Join(&t.ConnectEnd, u.ConnectEnd)
	hook.Join(&t.CallBegin, u.CallBegin)
	hook.Join(&t.CallEnd, u.CallEnd)
	hook.Join(&t.SessionOpened, u.SessionOpened)
	hook.Join(&t.SessionClosed, u.SessionClosed)
	hook.Join(&t.SessionBorrowed, u.SessionBorrowed)
	hook.Join(&t.SessionReleased, u.SessionReleased)
	hook.Join(&t.SessionReplaced, u.SessionReplaced)
	hook.Join(&t.BackoffChanged, u.BackoffChanged)
	hook.Join(&t.Junk, u.Junk)
	hook.Join(&t.Stderr, u.Stderr)
	hook.Join(&t.Panicked, u.Panicked)
}

// guarded returns a Trace whose funcs don't panic: a panic of one of t's is reported
// to panicked. A func that is nil stays so, which spares what it would be called with.
func (t *Trace) guarded(panicked func(name string, v any)) *Trace {
	g := *t
	hook.Guard(&g.WaitBegin, "Trace.WaitBegin", panicked)
	hook.Guard(&g.WaitEnd, "Trace.WaitEnd", panicked)
	hook.Guard(&g.ConnectBegin, "Trace.ConnectBegin", panicked)
	hook.Guard(&g.ProcessStarted, "Trace.ProcessStarted", panicked)
	hook.Guard(&g.ConnectEnd, "Trace.ConnectEnd", panicked)
	hook.Guard(&g.CallBegin, "Trace.CallBegin", panicked)
	hook.Guard(&g.CallEnd, "Trace.CallEnd", panicked)
	hook.Guard(&g.SessionOpened, "Trace.SessionOpened", panicked)
	hook.Guard(&g.SessionClosed, "Trace.SessionClosed", panicked)
	hook.Guard(&g.SessionBorrowed, "Trace.SessionBorrowed", panicked)
	hook.Guard(&g.SessionReleased, "Trace.SessionReleased", panicked)
	hook.Guard(&g.SessionReplaced, "Trace.SessionReplaced", panicked)
	hook.Guard(&g.BackoffChanged, "Trace.BackoffChanged", panicked)
	hook.Guard(&g.Junk, "Trace.Junk", panicked)
	hook.Guard(&g.Stderr, "Trace.Stderr", panicked)
	hook.Guard(&g.Panicked, "", func(string, any) {}) // there is nobody left to report it to
	return &g
}

// traceOf is what a pool with these options reports to.
func (p *Pool) traceOf(o *Options) Trace {
	panicked := func(name string, v any) { p.panicked(Origin{}, name, v, debug.Stack()) }
	var all Trace
	if o.Logger != nil {
		all.join((logger{o.Logger}).trace().guarded(panicked))
	}
	if o.Trace != nil {
		all.join(o.Trace.guarded(panicked))
	}
	return all
}

// released reports that a session was given back; why isn't empty when it serves
// nobody else.
func (p *Pool) released(ctx context.Context, c *conn, why CloseReason) {
	if p.trace.SessionReleased != nil {
		p.trace.SessionReleased(ctx, SessionReleasedInfo{c.borrowedOrigin(), why})
	}
}

// replaced reports that a caller leaves a session for another.
func (p *Pool) replaced(ctx context.Context, old *conn, why CloseReason) {
	if p.trace.SessionReplaced != nil {
		p.trace.SessionReplaced(ctx, SessionReplacedInfo{old.origin(), why})
	}
}

// backoffChanged reports that a server is held off, tried or trusted.
func (p *Pool) backoffChanged(a *poolstate.Action, state BackoffState) {
	if p.trace.BackoffChanged != nil {
		p.trace.BackoffChanged(context.Background(), BackoffChangedInfo{Origin{Server: a.Label}, state, a.Pause})
	}
}

// panicked reports a panic of one of the caller's funcs.
func (p *Pool) panicked(from Origin, name string, v any, stack []byte) {
	if p.trace.Panicked != nil {
		p.trace.Panicked(context.Background(), PanickedInfo{Origin: from, Func: name, Panic: panicText(v), Stack: string(stack)})
	}
}

// wait reports that a call waits, and returns what reports the end of it: that returns
// the error, with what is known of the wait if it is the end of ctx.
func (c *conn) wait(ctx context.Context, what WaitFor) (end func(error) error) {
	p := c.pool
	from, begun := c.origin(), p.now()
	if p.trace.WaitBegin != nil {
		p.trace.WaitBegin(ctx, WaitBeginInfo{from, what})
	}
	return func(err error) error {
		took := p.now() - begun
		if what != WaitConnect {
			p.waits.Add(1)
			p.waited.Add(int64(took))
		}
		if p.trace.WaitEnd != nil {
			p.trace.WaitEnd(ctx, WaitEndInfo{from, what, took, err})
		}
		if err != nil && err == ctx.Err() {
			return c.waitError(what, took, err)
		}
		return err
	}
}

// logger writes a line for each event: at Debug what happens with every call, at Info
// the beginning and the end of a session, at Warn what went wrong with one, and at
// Error what is wrong with the program. The attributes have the same names everywhere:
// session, server, reason, err, took and oneshot; tool and outcome of a call; line and
// lines of output; func, panic and stack; pause of a server that is held off.
type logger struct{ *slog.Logger }

func (l logger) trace() *Trace {
	return &Trace{
		SessionBorrowed: func(ctx context.Context, i SessionBorrowedInfo) {
			if l.Enabled(ctx, slog.LevelDebug) { // it is part of every call
				l.log(ctx, slog.LevelDebug, "session borrowed", i.Origin)
			}
		},
		SessionReleased: l.released,
		CallEnd: func(ctx context.Context, i CallEndInfo) {
			if l.Enabled(ctx, slog.LevelDebug) {
				l.log(ctx, slog.LevelDebug, "tool call ended", i.Origin,
					slog.String("tool", i.Tool), slog.String("outcome", string(i.Outcome)), slog.Duration("took", i.Took))
			}
		},
		SessionReplaced: func(ctx context.Context, i SessionReplacedInfo) {
			l.log(ctx, slog.LevelWarn, "session was lost before it was used, and is replaced", i.Origin, slog.String("reason", string(i.Reason)))
		},
		SessionOpened: func(ctx context.Context, i SessionOpenedInfo) {
			l.log(ctx, slog.LevelInfo, "session opened", i.Origin, slog.Duration("took", i.Took), slog.Bool("oneshot", i.OneShot))
		},
		ConnectEnd: func(ctx context.Context, i ConnectEndInfo) {
			if i.Err != nil && !errors.Is(i.Err, context.Canceled) {
				l.log(ctx, slog.LevelWarn, "session did not start", i.Origin, slog.String("err", i.Err.Error()))
			}
		},
		SessionClosed: l.closed,
		BackoffChanged: func(ctx context.Context, i BackoffChangedInfo) {
			l.LogAttrs(ctx, slog.LevelWarn, "mcppool: backoff of a server that failed: "+string(i.State),
				slog.String("server", i.Server), slog.Duration("pause", i.Pause))
		},
		Junk: func(ctx context.Context, i JunkInfo) {
			l.log(ctx, slog.LevelDebug, "no message on stdout", i.Origin, slog.Int("lines", i.Total), slog.String("line", i.Line))
		},
		Panicked: func(ctx context.Context, i PanickedInfo) {
			l.log(ctx, slog.LevelError, "a func of the caller panicked", i.Origin,
				slog.String("func", i.Func), slog.String("panic", i.Panic), slog.String("stack", i.Stack))
		},
	}
}

func (l logger) log(ctx context.Context, level slog.Level, msg string, from Origin, attrs ...slog.Attr) {
	if from.SessionID != "" {
		attrs = append(attrs, slog.String("session", from.SessionID), slog.String("server", from.Server))
	}
	l.LogAttrs(ctx, level, "mcppool: "+msg, attrs...)
}

func (l logger) released(ctx context.Context, i SessionReleasedInfo) {
	switch {
	case i.Reason == ReasonLeaked:
		l.log(ctx, slog.LevelError, "a session was acquired and never released", i.Origin)
	case !l.Enabled(ctx, slog.LevelDebug):
	case i.Reason == "":
		l.log(ctx, slog.LevelDebug, "session released", i.Origin)
	default:
		l.log(ctx, slog.LevelDebug, "session released", i.Origin, slog.String("reason", string(i.Reason)))
	}
}

func (l logger) closed(ctx context.Context, i SessionClosedInfo) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("reason", string(i.Reason))}
	if i.Reason == ReasonCrashed || i.Err != nil {
		level = slog.LevelWarn
	}
	if i.Err != nil {
		attrs = append(attrs, slog.String("err", i.Err.Error()))
	}
	l.log(ctx, level, "session closed", i.Origin, attrs...)
}

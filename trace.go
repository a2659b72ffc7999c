package mcppool

import (
	"context"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/hook"
)

// Trace tells what a pool does, while it does it. Each func may be nil; those
// that aren't run on the goroutine of what they tell of, outside the pool's locks,
// and what they take is added to it. They may ask and change the pool, but not wait
// for what they tell of: no calls in the same scope, no Close, no Shutdown. They are
// called from many goroutines at once. No argument holds a secret; texts of servers
// have known secrets blanked.
//
// The funcs with a ctx get that of the call, or for a connect one with the values
// of the call that began it.
type Trace struct {
	// WaitBegin and WaitEnd: a call can't go on at once. Every Begin has its End.
	WaitBegin func(ctx context.Context, from Origin, what WaitFor)
	WaitEnd   func(ctx context.Context, from Origin, what WaitFor, took time.Duration, err error)

	// ConnectBegin and ConnectEnd: a session is connected, for a spare too.
	// In between a process is started, unless the server has a URL; a second one
	// when a server of unknown era didn't bear the question for it.
	ConnectBegin   func(ctx context.Context, from Origin)
	ProcessStarted func(ctx context.Context, from Origin, pid int)
	ConnectEnd     func(ctx context.Context, from Origin, done ConnectDone)

	// CallBegin and CallEnd: a tool call is sent and answered, or given up. What
	// happened before is not part of it.
	CallBegin func(ctx context.Context, from Origin, tool string)
	CallEnd   func(ctx context.Context, from Origin, tool string, done CallDone)

	// SessionOpened and SessionClosed: each session that connected is told of
	// once by each.
	SessionOpened func(from Origin, spare bool)
	SessionClosed func(from Origin, why CloseReason, lived time.Duration)

	// ProcessEnded: the process of a session that was opened has ended, or was given
	// up. It comes before SessionClosed.
	ProcessEnded func(from Origin, done ProcessDone)
	// BreakerChanged: a server that failed is held off, tried, or trusted again
	// (see [Backoff]).
	BreakerChanged func(server string, state BreakerState, pause time.Duration)

	// Junk is a line of a server's stdout that is no message, cut to 256 bytes,
	// and how many there have been; at most ten a second are told of.
	Junk func(from Origin, line string, total int)
	// Stderr is a line that a server wrote to its stderr, cut to 4 KiB.
	Stderr func(from Origin, line string)
}

// WaitFor is what a call waits for.
type WaitFor string

const (
	WaitConnect WaitFor = "connect" // the session is being connected
	WaitTurn    WaitFor = "turn"    // another call of the session is under way
	WaitLimit   WaitFor = "limit"   // one of [Limits] is reached
)

// ConnectDone is the end of a connect.
type ConnectDone struct {
	Took  time.Duration
	Spare bool
	Info  *mcp.InitializeResult // what the server said of itself; nil when it isn't known
	Err   error                 // nil, or why it failed; context.Canceled when it was given up
}

// ProcessDone is the end of a process.
type ProcessDone struct {
	PID  int
	Exit string        // such as "exit status 0" or "signal: killed"; empty when it isn't known to have ended
	Took time.Duration // since it was asked to end; next to nothing for one that ended by itself
	Err  error         // what of its tree could not be ended; nil when nothing is left
}

// CallDone is the end of a tool call.
type CallDone struct {
	Took      time.Duration
	Outcome   Outcome
	RequestID int64 // of the JSON-RPC request, sent or not; 0 when it isn't known, as over HTTP
	Err       error // as the caller gets it; nil when the tool answered
}

// Outcome sorts the ends of calls.
type Outcome string

// The ends that a call can have.
const (
	OutcomeOK        Outcome = "ok"         // the tool answered
	OutcomeToolError Outcome = "tool error" // a result with IsError
	OutcomeRPCError  Outcome = "rpc error"  // a JSON-RPC error
	OutcomeTimeout   Outcome = "timeout"    // the caller's deadline
	OutcomeCancelled Outcome = "cancelled"  // by the caller
	OutcomeLost      Outcome = "lost"       // the connection died; the call was not repeated
	OutcomeClosed    Outcome = "closed"     // the server, the scope or the pool was closed
	OutcomeNotSent   Outcome = "not sent"   // refused, or given up, before it was sent
	OutcomeOther     Outcome = "other"      // such as an undecodable result
)

// BreakerState is how much a server that failed is trusted.
type BreakerState string

const (
	BreakerOpen     BreakerState = "open"      // it is held off for the pause
	BreakerHalfOpen BreakerState = "half-open" // one attempt is under way
	BreakerClosed   BreakerState = "closed"    // an attempt has held
)

// MergeTraces makes one Trace of several, which tells each in turn; nil ones are
// left out.
func MergeTraces(traces ...*Trace) *Trace {
	var all Trace
	for _, t := range traces {
		if t == nil {
			continue
		}
		all.WaitBegin = hook.Join3(all.WaitBegin, t.WaitBegin)
		all.WaitEnd = hook.Join5(all.WaitEnd, t.WaitEnd)
		all.ConnectBegin = hook.Join2(all.ConnectBegin, t.ConnectBegin)
		all.ProcessStarted = hook.Join3(all.ProcessStarted, t.ProcessStarted)
		all.ConnectEnd = hook.Join3(all.ConnectEnd, t.ConnectEnd)
		all.CallBegin = hook.Join3(all.CallBegin, t.CallBegin)
		all.CallEnd = hook.Join4(all.CallEnd, t.CallEnd)
		all.SessionOpened = hook.Join2(all.SessionOpened, t.SessionOpened)
		all.SessionClosed = hook.Join3(all.SessionClosed, t.SessionClosed)
		all.ProcessEnded = hook.Join2(all.ProcessEnded, t.ProcessEnded)
		all.BreakerChanged = hook.Join3(all.BreakerChanged, t.BreakerChanged)
		all.Junk = hook.Join3(all.Junk, t.Junk)
		all.Stderr = hook.Join2(all.Stderr, t.Stderr)
	}
	return &all
}

// wait tells that a call waits, and gives what tells the end of it.
func (c *conn) wait(ctx context.Context, what WaitFor) (end func(error)) {
	t := &c.pool.trace
	if t.WaitBegin == nil && t.WaitEnd == nil {
		return func(error) {}
	}
	from, begun := c.origin(), c.pool.now()
	if t.WaitBegin != nil {
		t.WaitBegin(ctx, from, what)
	}
	return func(err error) {
		if t.WaitEnd != nil {
			t.WaitEnd(ctx, from, what, c.pool.now()-begun, err)
		}
	}
}

// The log has one line for each event: at Debug what happens with every call, at
// Info the beginning and the end of a session, at Warn what went wrong with one.
// The attributes have the same names everywhere: session, server, reason, err, took
// and oneshot; tool and outcome of a call; line and lines of output; panic and stack
// of a handler; pause of a server that is held off.

func (p *Pool) log(level slog.Level, msg string, c *conn, attrs ...slog.Attr) {
	l := p.opts.Logger
	if l == nil || !l.Enabled(context.Background(), level) {
		return
	}
	attrs = append(attrs, slog.String("session", c.id), slog.String("server", c.label))
	l.LogAttrs(context.Background(), level, msg, attrs...)
}

// debug is log for what happens with every call, which must cost nothing when
// nobody listens.
func (p *Pool) debug(msg string, c *conn, attrs func() []slog.Attr) {
	if l := p.opts.Logger; l != nil && l.Enabled(context.Background(), slog.LevelDebug) {
		p.log(slog.LevelDebug, msg, c, attrs()...)
	}
}

func (p *Pool) logBorrowed(c *conn) {
	p.debug("mcppool: session borrowed", c, func() []slog.Attr { return nil })
}

// logReleased tells why, unless it is empty, the session serves nobody else.
func (p *Pool) logReleased(c *conn, why CloseReason) {
	p.debug("mcppool: session released", c, func() []slog.Attr {
		if why == "" {
			return nil
		}
		return []slog.Attr{slog.String("reason", string(why))}
	})
}

func (p *Pool) logCall(c *conn, tool string, begun moment, how outcome) {
	p.debug("mcppool: tool call ended", c, func() []slog.Attr {
		return []slog.Attr{
			slog.String("tool", tool), slog.String("outcome", string(outcomes[how])), slog.Duration("took", p.now()-begun),
		}
	})
}

// logRetry tells that a caller goes on to another session, since nothing was sent
// to this one.
func (p *Pool) logRetry(c *conn, why CloseReason) {
	p.log(slog.LevelWarn, "mcppool: session was lost before it was used, and is replaced", c, slog.String("reason", string(why)))
}

func (p *Pool) logOpened(c *conn, oneShot bool) {
	p.log(slog.LevelInfo, "mcppool: session opened", c,
		slog.Duration("took", p.now()-c.st.Opened), slog.Bool("oneshot", oneShot))
}

func (p *Pool) logStartFailed(c *conn, err error) {
	if err == nil {
		return // it came up after it was given up; its close is logged
	}
	p.log(slog.LevelWarn, "mcppool: session did not start", c, slog.String("err", err.Error()))
}

func (p *Pool) logClosed(c *conn, why CloseReason) {
	level := slog.LevelInfo
	if why == ReasonCrashed {
		level = slog.LevelWarn
	}
	p.log(level, "mcppool: session closed", c, slog.String("reason", string(why)))
}

func (p *Pool) logCloseError(c *conn, err error) {
	p.log(slog.LevelWarn, "mcppool: closing a session failed", c, slog.String("err", err.Error()))
}

package mcppool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/lastwords"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// The conditions that callers branch on with errors.Is. An error of the pool
// carries the tool and the phase in its text besides, and never a secret.
var (
	// ErrClosed: the pool is closed, or it closed while the call was under way.
	ErrClosed = errors.New("mcppool: pool is closed")
	// ErrServerClosed: the server or the scope was closed, edited or removed
	// while the call was connecting, waiting or under way: [Pool.CloseServer]
	// and its like ran, or [Call.Check] said no. The tool may have run.
	ErrServerClosed = errors.New("mcppool: server was closed, updated or removed during the call")
	// ErrSessionLost: the connection died during the call. The tool may have
	// run; the call is not sent again. Errors are of type [*SessionLostError].
	ErrSessionLost = errors.New("mcppool: session lost")
	// ErrBusy: a configured limit refused the call, which was not sent. Errors
	// are of type [*BusyError].
	ErrBusy = errors.New("mcppool: busy")
)

// ConfigError is bad input: nothing was started or sent because of it, and no
// session was touched.
type ConfigError struct {
	Field  string // as written in Go: Server.Dir, Call.Args, Options.CloseTimeout
	Reason string // what is wrong with it, without its value
}

func (e *ConfigError) Error() string { return "mcppool: " + e.Field + " " + e.Reason }

// StartError says that a session never came up. Nothing was sent, so the call is safe to
// repeat.
type StartError struct {
	// Server is the label of the server (see [Server.String]).
	Server string
	// Phase is what failed: "start" (no process), "connect" (no handshake).
	Phase string
	// Exit is how the process ended, such as "exit status 3" or "signal:
	// killed"; empty when it didn't end by itself.
	Exit string
	// Stderr is the tail of what it wrote to stderr, with known secrets blanked.
	Stderr string
	// Stdout is the tail of what it wrote to stdout that is no message, likewise.
	Stdout string
	// RetryAfter is how long to wait before another attempt has a chance; zero
	// when the next call tries at once.
	RetryAfter time.Duration
	// Err is the cause.
	Err error
}

func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcppool: %s did not %s: %s", e.Server, e.Phase, text(e.Err))
	b.WriteString(lastwords.Sentence(e.Exit, e.Stderr, e.Stdout))
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "; next attempt in %s", e.RetryAfter.Round(time.Millisecond))
	}
	return b.String()
}

// Unwrap returns the cause, except that a deadline or cancellation inside a
// connect isn't the caller's own, and so doesn't count as one.
func (e *StartError) Unwrap() error {
	if errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled) {
		return nil
	}
	return e.Err
}

// SessionLostError is the [ErrSessionLost] of a call.
type SessionLostError struct {
	// Server is the label of the server (see [Server.String]).
	Server string
	// Exit is how the process ended, such as "exit status 3" or "signal:
	// killed"; empty when it isn't known to have ended.
	Exit string
	// Stderr is the tail of what it wrote to stderr, with known secrets blanked.
	Stderr string
	// Stdout is the tail of what it wrote to stdout that is no message, likewise.
	Stdout string
	// Err is what the connection failed of.
	Err error
}

func (e *SessionLostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcppool: session of %s lost", e.Server)
	if e.Err != nil {
		b.WriteString(": " + text(e.Err))
	}
	b.WriteString(lastwords.Sentence(e.Exit, e.Stderr, e.Stdout))
	return b.String()
}

// Is makes every SessionLostError an [ErrSessionLost].
func (e *SessionLostError) Is(target error) bool { return target == ErrSessionLost }

func (e *SessionLostError) Unwrap() error { return e.Err }

// WaitError is the end of a caller's context, which it wraps, during a wait: what was
// waited for, and how far that had come. Nothing was sent.
type WaitError struct {
	// Server is the label of the server (see [Server.String]).
	Server string
	// For is what was waited for, and Took how long.
	For  WaitFor
	Took time.Duration
	// Limit is the field of [Limits] that was reached, or "Policy.Mode" where a
	// server is exclusive and another scope has it; empty for other waits.
	Limit string
	// PID is the server's process while it starts; 0 when there is none yet.
	PID int
	// Stderr and Stdout are the tails of what that wrote so far, as in
	// [StartError].
	Stderr, Stdout string
	// Err is the error of the context.
	Err error
}

func (e *WaitError) Error() string {
	var b strings.Builder
	took := e.Took.Round(time.Millisecond)
	switch {
	case e.Limit == limitExclusive:
		fmt.Fprintf(&b, "waited %s for another scope to be done with the server, which is exclusive", took)
	case e.For == WaitLimit:
		fmt.Fprintf(&b, "waited %s at the limit %s", took, e.Limit)
	case e.For == WaitTurn:
		fmt.Fprintf(&b, "waited %s for another call of the session", took)
	case e.PID == 0:
		fmt.Fprintf(&b, "waited %s for the connection", took)
	default:
		fmt.Fprintf(&b, "waited %s for the server to start, whose process %d has not answered yet", took, e.PID)
	}
	fmt.Fprintf(&b, ": %s", text(e.Err))
	b.WriteString(lastwords.Sentence("", e.Stderr, e.Stdout))
	return b.String()
}

func (e *WaitError) Unwrap() error { return e.Err }

// limitExclusive is the limit of a server that is exclusive.
const limitExclusive = "Policy.Mode"

// LeftError is an error of [Pool.Close] and [Pool.Shutdown], and of a session's close
// in [SessionClosedInfo]: processes that can't be ended, since they belong to another
// user or hang in the kernel, containers that aren't gone, and folders that can't be
// removed. The pool has given them up.
type LeftError struct {
	// Server is the label of the server (see [Server.String]).
	Server string
	// PIDs are the processes; none if it isn't known whether there are any.
	PIDs []int
	// Dir is the folder that is left; empty where it is no folder.
	Dir string
	// Err is why they can't be ended, such as [syscall.EPERM]; nil if they were
	// killed and aren't gone.
	Err error
}

func (e *LeftError) Error() string {
	text := "may have left processes behind"
	switch {
	case e.Dir != "":
		text = "left a folder behind"
	case len(e.PIDs) > 0:
		text = "left processes behind: " + strings.Trim(fmt.Sprint(e.PIDs), "[]")
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return "mcppool: " + e.Server + " " + text
}

func (e *LeftError) Unwrap() error { return e.Err }

// RPCError is a JSON-RPC error answer of the server. The session lives on.
// errors.Is with mcp-go's sentinels, such as mcp.ErrMethodNotFound, works.
type RPCError struct {
	Code    int
	Message string          // with known secrets blanked
	Data    json.RawMessage // as sent, with known secrets blanked; nil when there is none
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("mcppool: server answered with error %d: %s", e.Code, e.Message)
}

func (e *RPCError) Unwrap() error {
	details := mcp.JSONRPCErrorDetails{Code: e.Code, Message: e.Message}
	if len(e.Data) > 0 {
		details.Data = e.Data
	}
	return details.AsError()
}

// BusyError is the [ErrBusy] of a call that a limit refused. Nothing was sent.
type BusyError struct {
	Limit      string        // the field of [Limits], such as "MaxProcesses"
	Max        int           // its value
	Waiting    int           // how many callers waited at limits then
	RetryAfter time.Duration // about how long it takes until as many have been served
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("mcppool: busy: %s is %d and %d callers wait; try again in %s",
		e.Limit, e.Max, e.Waiting, e.RetryAfter.Round(time.Millisecond))
}

// Is makes every BusyError an [ErrBusy].
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// heldOffError says why a server isn't started, and until when.
func heldOffError(label string, held *poolstate.HeldOffError) error {
	err := &StartError{Server: label, Phase: "start", RetryAfter: held.Wait, Err: held.Reason}
	var (
		start *StartError
		lost  *SessionLostError
	)
	switch {
	case errors.As(held.Reason, &start):
		err.Phase, err.Exit, err.Err = start.Phase, start.Exit, start.Err
		err.Stderr, err.Stdout = start.Stderr, start.Stdout
	case errors.As(held.Reason, &lost):
		// What it wrote while it served somebody else is not for this caller.
		err.Exit, err.Err = lost.Exit, lost.Err
	}
	return err
}

// phase says how far an operation came.
type phase uint8

const (
	phaseStart phase = iota // before anything
	phaseQueue              // waiting for the session: its connect, its turn
	phaseSent               // the request has gone out, or may have
)

func (p phase) String() string {
	return [...]string{"before it began", "waiting for the session", "waiting for the answer"}[p]
}

// opError is the context that every error of an operation on a session gets.
type opError struct {
	op     string // `tool "echo"`, "tools/list", "session"
	server string
	phase  phase
	err    error
}

func (e *opError) Error() string {
	var wait *WaitError
	if errors.As(e.err, &wait) { // which says what for
		return fmt.Sprintf("mcppool: %s on %s: %s", e.op, e.server, wait)
	}
	return fmt.Sprintf("mcppool: %s on %s: %s: %s", e.op, e.server, e.phase, text(e.err))
}

func (e *opError) Unwrap() error { return e.err }

// text is an error's text without the prefix that the outer error has already.
func text(err error) string {
	if err == nil {
		return "unknown"
	}
	return strings.TrimPrefix(err.Error(), "mcppool: ")
}

// SafeToRetry reports whether the call that returned err was certainly not
// sent to the server, so that the same call may be made again (to another pool,
// after [ErrClosed]) without a tool running twice. It says no to what a retry
// can't mend: bad input and closed servers.
func SafeToRetry(err error) bool {
	var (
		op     *opError
		config *ConfigError
		start  *StartError
	)
	switch {
	case errors.As(err, &config), errors.Is(err, ErrServerClosed):
		return false
	case errors.As(err, &op):
		return op.phase < phaseSent
	case errors.As(err, &start):
		return true
	default:
		return isNotSent(err) // as another replica said
	}
}

// wrap says what failed, where and how far it had come. Bad input speaks for
// itself.
func wrap(op string, srv *Server, ph phase, err error) error {
	var config *ConfigError
	if errors.As(err, &config) {
		return err
	}
	return &opError{op: op, server: srv.String(), phase: ph, err: err}
}

// waitError says what a caller waited for whose ctx has ended.
func (c *conn) waitError(what WaitFor, took time.Duration, err error) error {
	e := &WaitError{Server: c.label, For: what, Took: took, Err: err}
	switch what {
	case WaitLimit:
		c.pool.mu.Lock()
		limit := c.pool.state.WaitsFor(c.st)
		c.pool.mu.Unlock()
		e.Limit = limit.String()
		if limit == poolstate.LimitServer && c.srv.Policy.Mode == Exclusive {
			e.Limit = limitExclusive
		}
	case WaitConnect:
		if r := c.starting.Load(); r != nil {
			e.PID = r.Pid()
			_, e.Stderr, e.Stdout = tailsOf(c.server.redact, r.Death())
		}
	}
	return e
}

// lostError says what is known of the end of the connection.
func (c *conn) lostError(err error) error {
	lost := &SessionLostError{Server: c.label, Err: err}
	if isClosed(c.lost) {
		if why := c.safely("Client.Err", c.client.Err); why != nil {
			lost.Err = publicError(c.server.redact, why)
		}
	}
	if d, ok := c.client.(*defaultClient); ok {
		lost.Exit, lost.Stderr, lost.Stdout = d.death()
	}
	return lost
}

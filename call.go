package mcppool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/outcome"
)

// Call is one call of a tool.
type Call struct {
	// Tool is the tool's name. Required.
	Tool string
	// Args are the arguments: whatever encodes to a JSON object, such as a map,
	// a struct or a json.RawMessage. Nil is sent as {}. A RawMessage goes out
	// digit by digit as it is, apart from line breaks between its tokens.
	Args any
	// Meta is sent as the request's _meta, for example a trace context. Nil
	// sends none but what the protocol asks for.
	Meta *mcp.Meta
	// Scope names whose state the session holds, usually from [Scope]. Empty
	// means that no state is kept: the call gets a session of its own, which
	// ends with it.
	Scope string
	// Check reports whether srv is still what the caller's configuration says.
	// It is asked after a connect and right before the call is sent; when it
	// says no, or panics, the call fails with [ErrServerClosed] and its session
	// is closed. It may be called from several goroutines at once, must not
	// block, and must not call the pool. Nil means yes.
	Check func() bool
	// Gate is asked with the session right before the call is sent, after Check: an
	// error of it is the call's, which is not sent, and costs no session. It must not
	// call the pool, nor block for long, since others' calls may wait for it. Nil lets
	// everything through.
	Gate func(Served) error
	// IfSession lets the call run in the session of this id alone: in another it isn't
	// sent, and fails with [ErrOtherSession]. Empty is any.
	IfSession string
	// Handlers, unless it is nil, answers what the server asks during this call, in
	// place of [Options.Handlers], by its Sampling and Elicitation where these aren't nil. A server is
	// offered what the pool's Handlers have. It has no effect on a Concurrent server.
	Handlers *Handlers
	// OnProgress gets the progress notifications of this call, in order, all of
	// them before the call returns. It runs on the connection's notification
	// goroutine, must not block, since that keeps the call from returning, its ctx's
	// end too, and may call the pool, though not with the same scope and
	// server, where it is this call's turn. It needs a client that passes
	// notifications on, as the default one does.
	OnProgress func(mcp.ProgressNotification)
	// Served, unless it is nil, is set to the session that the call goes to, before
	// the call returns, and left alone when the call gets none.
	Served *Served
}

// Served says which session a call went to.
type Served struct {
	// Origin is the session. A caller that sees another SessionID than at its last call
	// in the scope knows that the state which it left is gone.
	Origin
	// Fresh says that no call has gone to the session before, so that it holds what
	// [Options.AfterConnect] left in it.
	Fresh bool
	// Follows is why the session ended that the scope, or the shared server, had before
	// this one; empty when it had none, or that was too long ago: it is remembered for
	// the last 1 024 of them.
	Follows CloseReason
	// Node is the replica that ran the call, and Hops how many others it went through,
	// where several share their work (see the module cluster); empty and 0 without.
	Node string
	Hops int
}

// request makes the request of a call. Arguments is what the caller gave, for
// clients that look into it; RawArguments is what goes over the wire.
func (c *Call) request() (mcp.CallToolRequest, error) {
	var req mcp.CallToolRequest
	if strings.TrimSpace(c.Tool) == "" {
		return req, &ConfigError{Field: "Call.Tool", Reason: "is empty"}
	}
	raw, err := encode.Object(c.Args)
	if err != nil {
		return req, &ConfigError{Field: "Call.Args", Reason: err.Error()}
	}
	req.Params.Name = c.Tool
	req.Params.Arguments = c.Args
	req.Params.RawArguments = raw
	req.Params.Meta = c.Meta
	if len(raw) == len("{}") {
		req.Params.Arguments = emptyObject
	}
	return req, nil
}

// emptyObject is what a client sees in Arguments for nil: mcp-go's own client
// sends a nil map as null, which servers refuse.
var emptyObject any = json.RawMessage("{}")

// UnknownContent is a block of a result whose type mcp-go doesn't know, kept as
// the server sent it.
type UnknownContent struct {
	mcp.Content `json:"-"` // nil; it makes this a Content
	Type        string
	Raw         json.RawMessage // the whole block
}

// MarshalJSON returns the block as it came.
func (c UnknownContent) MarshalJSON() ([]byte, error) { return c.Raw, nil }

func unknownContent(typ string, raw json.RawMessage) mcp.Content {
	return UnknownContent{Type: typ, Raw: raw}
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

// callEnd is what becomes of a call and its session.
type callEnd struct {
	why CloseReason // why the session must not be used again, if so
	how outcome.Kind
}

// call makes a tool call and reports it. err is as the caller gets it.
func (c *conn) call(ctx context.Context, req *mcp.CallToolRequest, call *Call) (res *mcp.CallToolResult, err error, done callEnd) {
	t := &c.pool.trace
	begun := c.pool.now()
	first := !c.served.Load() && !c.served.Swap(true)
	var in Served
	if call.Served != nil || call.Gate != nil {
		in = Served{Origin: c.borrowedOrigin(), Fresh: first, Follows: CloseReason(c.st.Follows())}
	}
	if call.Served != nil {
		*call.Served = in
	}
	if call.Handlers != nil && !c.srv.Policy.Concurrent {
		c.handlers.Store(call.Handlers)
		defer c.handlers.Store(nil)
	}
	c.current.Begin(call.Tool, begun)
	defer c.current.End()
	if t.CallBegin != nil {
		t.CallBegin(ctx, CallBeginInfo{c.borrowedOrigin(), call.Tool})
	}
	var id *int64
	if t.CallEnd != nil {
		id = new(int64)
	}
	res, err = c.callTool(ctx, req, call, in, id)
	switch {
	case err != nil:
		res = nil
		err, done = c.end(ctx, toolOp(call.Tool), err)
		if first && done.how == outcome.NotSent {
			c.served.Store(false)
		}
		failed := err // a variable of its own, which alone goes to the heap
		c.lastErr.Store(&failed)
	case res != nil && res.IsError:
		done.how = outcome.ToolError
	}
	if t.CallEnd != nil {
		t.CallEnd(ctx, CallEndInfo{
			Origin: c.borrowedOrigin(), Tool: call.Tool,
			Took: c.pool.now() - begun, Outcome: Outcome(done.how.String()), RequestID: *id, Err: err,
		})
	}
	return res, err, done
}

// endedByLoss reports whether ctx is that of a Do of c and ended with the connection.
func (c *conn) endedByLoss(ctx context.Context) bool {
	return c.st.Lost() && errors.Is(context.Cause(ctx), ErrSessionLost)
}

// end turns the error of a request into the caller's, and says what becomes of
// the session. Who wins when several are true: an answer of the server over
// everything, then a close of the session, then the end of the caller's ctx, then
// the loss of the connection.
func (c *conn) end(ctx context.Context, op string, err error) (error, callEnd) {
	var (
		rpc  *RPCError
		done = callEnd{how: outcome.Other}
		ph   = phaseSent
	)
	if isNotSent(err) {
		ph = phaseQueue
	}
	switch {
	case errors.As(err, &rpc):
		err = rpc
		done.how = outcome.RPCError
	case c.st.Cause() != nil:
		err = c.st.Cause()
		done.how = outcome.Closed
		if errors.Is(err, ErrSessionLost) { // it was found to be wedged
			done.how = outcome.Lost
		}
	case errors.Is(err, ErrServerClosed): // a Check that was asked right before the send
		done = callEnd{ReasonServerClosed, outcome.Closed}
	case ctx.Err() != nil && !c.endedByLoss(ctx):
		err = ctx.Err()
		why := ReasonTimeout
		done.how = outcome.Timeout
		if errors.Is(err, context.Canceled) {
			why = ReasonCancelled
			done.how = outcome.Cancelled
		}
		switch {
		case ph != phaseSent:
		case c.st.Probed():
			c.doubtIt()
		default:
			done.why = why
		}
	case c.st.Lost() || httpconn.IsLost(err):
		err = c.lostError(err)
		done = callEnd{ReasonCrashed, outcome.Lost}
	}
	if ph != phaseSent {
		done.how = outcome.NotSent
	}
	return &opError{op: op, server: c.label, phase: ph, err: err}, done
}

// countRefused counts a call that never got a session.
func (p *Pool) countRefused() {
	p.mu.Lock()
	p.outcomes[outcome.NotSent]++
	p.mu.Unlock()
}

// AbandonPolicy says what becomes of a session whose call was given up: its ctx
// ended after the call was sent.
type AbandonPolicy uint8

const (
	// AbandonDefault is what the pool's options say, and there AbandonDiscard.
	AbandonDefault AbandonPolicy = iota
	// AbandonDiscard closes the session: nobody knows what state it is in. One that
	// is Concurrent is everybody's, and is probed all the same.
	AbandonDiscard
	// AbandonProbe keeps it. The server is told that the call was cancelled, and asked
	// at once whether it answers; who needs the session meanwhile waits for that. If it
	// doesn't answer within ProbeTimeout, the session is replaced.
	AbandonProbe
)

func toolOp(tool string) string { return "tool " + strconv.Quote(tool) }

// giveBack ends the borrow of a call.
func (p *Pool) giveBack(ctx context.Context, c *conn, done callEnd) {
	p.mu.Lock()
	p.countLocked(c, done.how)
	p.leaveLocked(c, done.why)
	p.unlock()
	p.released(ctx, c, done.why)
}

// leaveLocked ends a borrow; why isn't empty when c must serve nobody else. The time is
// read under the lock, so that idle sessions are filed in order. The caller must hold
// p.mu.
func (p *Pool) leaveLocked(c *conn, why CloseReason) {
	p.state.Leave(c.st, nil, reason(why), p.now())
}

// countLocked counts a call that has ended. The caller must hold p.mu.
func (p *Pool) countLocked(c *conn, how outcome.Kind) {
	p.outcomes[how]++
	if how != outcome.NotSent {
		c.st.Called()
	}
}

// ErrOtherSession says that the session of [Call.IfSession] is gone. The call was not sent.
var ErrOtherSession = errors.New("mcppool: the session that the call is for is gone")

// gateOf is all that is asked right before a call is sent; nil for nothing.
func (c *conn) gateOf(call *Call, in Served) func() error {
	if call.Check == nil && call.Gate == nil && call.IfSession == "" {
		return nil
	}
	check, gate, only, session := call.Check, call.Gate, call.IfSession, in // the heap's, for a call that has a gate alone
	return func() error {
		if only != "" && only != c.id {
			return ErrOtherSession
		}
		if err := ask(check); err != nil || gate == nil {
			return err
		}
		return gate(session)
	}
}

// ask runs a Check. One that panics counts as a no.
func ask(check func() bool) (err error) {
	if check == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (Check panicked: %s)", ErrServerClosed, panicText(v))
		}
	}()
	if !check() {
		return ErrServerClosed
	}
	return nil
}

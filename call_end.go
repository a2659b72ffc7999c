package mcppool

import (
	"context"
	"errors"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// outcome is an [Outcome] that can be counted cheaply.
type outcome uint8

const (
	outcomeOK outcome = iota
	outcomeToolError
	outcomeRPCError
	outcomeTimeout
	outcomeCancelled
	outcomeLost
	outcomeClosed
	outcomeNotSent
	outcomeOther
	outcomeCount
	outcomeNone = outcomeCount // no call was made
)

var outcomes = [outcomeCount]Outcome{
	OutcomeOK, OutcomeToolError, OutcomeRPCError, OutcomeTimeout, OutcomeCancelled, OutcomeLost, OutcomeClosed,
	OutcomeNotSent, OutcomeOther,
}

// callEnd is what becomes of a call and its session.
type callEnd struct {
	why CloseReason // why the session must not be used again, if so
	how outcome
}

// current is the call that a session is busy with.
type current struct {
	mu    sync.Mutex // protects the fields below
	tool  string     // empty when it is idle; of overlapping calls, the last
	since moment
}

func (c *current) set(tool string, since moment) {
	c.mu.Lock()
	c.tool, c.since = tool, since
	c.mu.Unlock()
}

func (c *current) get() (tool string, since moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tool, c.since
}

// call makes a tool call and tells of it. err is as the caller gets it.
func (s *session) call(ctx context.Context, req *mcp.CallToolRequest, call *Call) (res *mcp.CallToolResult, err error, done callEnd) {
	t := &s.pool.trace
	begun := s.pool.now()
	s.current.set(call.Tool, begun)
	defer s.current.set("", 0)
	if t.CallBegin != nil {
		t.CallBegin(ctx, s.borrowedOrigin(), call.Tool)
	}
	var id *int64
	if t.CallEnd != nil {
		id = new(int64)
	}
	res, err = s.callTool(ctx, req, call, id)
	switch {
	case err != nil:
		res = nil
		err, done = s.end(ctx, toolOp(call.Tool), err)
		failed := err // a variable of its own, which alone goes to the heap
		s.lastErr.Store(&failed)
	case res != nil && res.IsError:
		done.how = outcomeToolError
	}
	s.pool.logCall(s, call.Tool, begun, done.how)
	if t.CallEnd != nil {
		t.CallEnd(ctx, s.borrowedOrigin(), call.Tool, CallDone{
			Took: s.pool.now() - begun, Outcome: outcomes[done.how], RequestID: *id, Err: err,
		})
	}
	return res, err, done
}

// end turns the error of a request into the caller's, and says what becomes of
// the session. Who wins when several are true: an answer of the server over
// everything, then a close of the session, then the end of the caller's ctx, then
// the loss of the connection.
func (s *session) end(ctx context.Context, op string, err error) (error, callEnd) {
	var (
		rpc  *RPCError
		done = callEnd{how: outcomeOther}
		ph   = phaseSent
	)
	if isNotSent(err) {
		ph = phaseQueue
	}
	switch {
	case errors.As(err, &rpc):
		err = rpc
		done.how = outcomeRPCError
	case s.isKilled():
		err = s.cause
		done.how = outcomeClosed
	case errors.Is(err, ErrServerClosed): // a Check that was asked right before the send
		done = callEnd{CloseServerClosed, outcomeClosed}
	case ctx.Err() != nil:
		err = ctx.Err()
		why := CloseTimeout
		done.how = outcomeTimeout
		if errors.Is(err, context.Canceled) {
			why = CloseCancelled
			done.how = outcomeCancelled
		}
		switch {
		case ph != phaseSent:
		case s.abandonPolicy() == Probe:
			s.suspect.Store(true)
		default:
			done.why = why
		}
	case s.isLost() || isConnectionError(err):
		err = s.lostError(err)
		done = callEnd{CloseCrashed, outcomeLost}
	}
	if ph != phaseSent {
		done.how = outcomeNotSent
	}
	return &opError{op: op, server: s.label, phase: ph, err: err}, done
}

// countRefused counts a call that never got a session.
func (p *Pool) countRefused() {
	p.mu.Lock()
	p.outcomes[outcomeNotSent]++
	p.mu.Unlock()
}

package mcppool

import (
	"context"
	"errors"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Session is a session that [Pool.Do] has borrowed: as long as it is held,
// nobody else's calls reach it. Its methods are safe for concurrent use; calls
// made at the same time go out at the same time.
type Session struct {
	s *session

	mu    sync.Mutex // protects the fields below
	ended bool
	why   CloseReason // why the session must not serve others, if so
	calls uint64      // tool calls sent
}

// errEnded is a misuse: the Session was kept beyond its borrow.
var errEnded = errors.New("mcppool: Session used after it was given back")

// ID names the session in logs and [Pool.Sessions]. It is never used again.
func (l *Session) ID() string { return l.s.id }

// CallTool calls a tool within the borrow. The call's Scope is that of the
// borrow, whatever it says. Errors are those of [Pool.CallTool]; after one that
// costs the session, every further call fails with [ErrSessionLost].
func (l *Session) CallTool(ctx context.Context, call Call) (*mcp.CallToolResult, error) {
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	var res *mcp.CallToolResult
	err = l.run(ctx, toolOp(call.Tool), func() (err error) {
		if err := ask(call.Check); err != nil {
			return &notSentError{err}
		}
		l.mu.Lock()
		l.calls++
		l.mu.Unlock()
		res, err = l.s.callTool(ctx, &req, &call)
		return err
	})
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
	if err := l.usable(ctx); err != nil {
		return &opError{op: op, server: l.s.label, phase: phaseQueue, err: err}
	}
	err := request()
	if err == nil {
		return nil
	}
	err, why := l.s.outcome(ctx, op, err)
	if why != "" {
		l.mu.Lock()
		l.why = why
		l.mu.Unlock()
	}
	return err
}

func (l *Session) usable(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return errEnded
	case l.s.isKilled():
		return l.s.cause
	case l.why != "", l.s.isLost():
		return l.s.lostError(nil)
	default:
		return ctx.Err()
	}
}

// end makes every further use an error. It says why the session must not be
// kept, if so, and how many calls there were.
func (l *Session) end() (CloseReason, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.why, l.calls
}

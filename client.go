package mcppool

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/httpconn"
)

// Client is one open connection to a server. It is safe for concurrent use.
type Client interface {
	// CallTool makes one tools/call under ctx. Params.RawArguments holds the
	// arguments as one line of JSON; Params.Arguments is what the caller of the
	// pool gave. It returns when ctx ends or Close is called, and never sends a
	// request twice. See [NotSent] and [RPCError] for what it may tell.
	CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)
	// ListTools gives one page of tools.
	ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error)
	// Done is closed once the connection is lost for good. Every call gives the
	// same channel.
	Done() <-chan struct{}
	// Err says why, after Done.
	Err() error
	// Close ends the connection, makes the calls under way return, and returns
	// once nothing of it is left running. The pool calls it exactly once.
	Close() error
}

// NotSent marks an error of [Client.CallTool] as one that came before anything
// was sent, such as the end of ctx before the request's turn: the session is
// spared, and the call is safe to repeat. The error itself still counts as what
// it is.
func NotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

func isNotSent(err error) bool {
	var e *notSentError
	return errors.As(err, &e)
}

// isConnectionError tells mcp-go's report of a broken transport from an error
// of a server that is alive.
func isConnectionError(err error) bool { return httpconn.IsLost(err) }

// probe asks whether the server behind s is alive.
func (s *session) probe(ctx context.Context) error {
	if p, ok := s.client.(Prober); ok {
		return p.Probe(ctx)
	}
	switch _, err := s.client.ListTools(ctx, mcp.ListToolsRequest{}); {
	case err == nil:
		return nil
	case s.isLost() || isConnectionError(err):
		return s.lostError(err)
	default:
		return ctx.Err() // if that is nil, the server has answered
	}
}

// processReporter is a client that knows its process while it lives.
type processReporter interface {
	process() (pid int, stderr string)
}

// deathReporter is a client that knows how its process ended.
type deathReporter interface {
	death() (exit, stderr string)
}

// callTool makes a tools/call. The type of the default client is asked for by
// name, since what is passed through an interface goes to the heap.
func (s *session) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call, id *int64) (*mcp.CallToolResult, error) {
	if c, ok := s.client.(*defaultClient); ok {
		return c.callTool(ctx, req, call, id)
	}
	return s.client.CallTool(ctx, *req)
}

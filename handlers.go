package mcppool

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/rpc"
)

// Handlers answer what servers ask of their client. Servers of the modern era ask
// by the result of a call, which then goes on with the answers, as the protocol has
// it; the others ask by requests of their own. A nil one isn't offered to
// servers, and one that asks all the same gets a JSON-RPC error at once. They
// run on goroutines of the connection, may block and may call the pool, though
// not with the scope and server that asks, whose call may be waiting for the
// answer. One that panics answers with an error.
type Handlers struct {
	// Sampling answers sampling/createMessage: the server wants a model's answer.
	Sampling func(ctx context.Context, from Origin, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error)
	// Elicitation answers elicitation/create: the server wants to ask the user.
	Elicitation func(ctx context.Context, from Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	// Roots answers roots/list: the server wants to know its working folders.
	Roots func(ctx context.Context, from Origin) ([]mcp.Root, error)
	// Notification gets all notifications but progress, one at a time and in
	// order for each session: log messages, changes of lists, updates.
	Notification func(from Origin, n mcp.JSONRPCNotification)
}

// Origin says which session something comes from.
type Origin struct {
	SessionID string // see [SessionInfo]
	Server    string // its label (see [Server.String])
	Scope     string
	HTTP      bool // the server is reached at a URL; it has no process of the pool's
}

// origin is where what a session does comes from. A spare gets its scope when it
// is handed out.
func (s *session) origin() Origin {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.borrowedOrigin()
}

// borrowedOrigin is origin for those who borrow s, under whom it doesn't change.
func (s *session) borrowedOrigin() Origin {
	return Origin{SessionID: s.id, Server: s.label, Scope: s.key.scope, HTTP: s.srv.IsHTTP()}
}

// handlersOf are the handlers for one session.
func (p *Pool) handlersOf(s *session) (c rpc.Handlers) {
	h := &p.opts.Handlers
	if h.Sampling != nil {
		c.Sampling = func(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return h.Sampling(ctx, s.origin(), req)
		}
	}
	if h.Elicitation != nil {
		c.Elicitation = func(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			return h.Elicitation(ctx, s.origin(), req)
		}
	}
	if h.Roots != nil {
		c.Roots = func(ctx context.Context) ([]mcp.Root, error) { return h.Roots(ctx, s.origin()) }
	}
	if h.Notification != nil {
		c.Notification = func(n mcp.JSONRPCNotification) { h.Notification(s.origin(), n) }
	}
	return c
}

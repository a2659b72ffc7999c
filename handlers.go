package mcppool

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// Handlers answer what servers ask of their client. A nil one isn't offered to
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
	return Origin{SessionID: s.id, Server: s.label, Scope: s.key.scope}
}

// clientOptions are those of mcp-go's client for a session.
func (p *Pool) clientOptions(s *session) []client.ClientOption {
	var opts []client.ClientOption
	h := &p.opts.Handlers
	if h.Sampling != nil {
		opts = append(opts, client.WithSamplingHandler(asking{h, s.origin()}))
	}
	if h.Elicitation != nil {
		opts = append(opts, client.WithElicitationHandler(asking{h, s.origin()}))
	}
	if h.Roots != nil {
		opts = append(opts, client.WithRootsHandler(asking{h, s.origin()}))
	}
	return opts
}

// asking is the handlers in mcp-go's form, for one session.
type asking struct {
	h    *Handlers
	from Origin
}

func (a asking) CreateMessage(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return a.h.Sampling(ctx, a.from, req)
}

func (a asking) Elicit(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return a.h.Elicitation(ctx, a.from, req)
}

func (a asking) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	roots, err := a.h.Roots(ctx, a.from)
	if err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}

// notify passes a notification on.
func (h *Handlers) notify(from Origin, method string, params json.RawMessage) {
	if h.Notification == nil {
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	if len(params) > 0 && json.Unmarshal(params, &n.Params) != nil {
		n.Params = mcp.NotificationParams{} // params that aren't an object
	}
	h.Notification(from, n)
}

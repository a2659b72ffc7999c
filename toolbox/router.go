package toolbox

import (
	"context"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Handlers answer what servers ask, and take what they tell, for the
// conversation that owns the session. That is the zero [Conversation] for
// sessions that belong to none: those of calls without a thread, of shared
// servers, and of listing tools. What is nil isn't offered to servers; one that asks all the same gets a
// JSON-RPC error at once. They run as those of [mcppool.Handlers] do.
type Handlers struct {
	// Sampling answers sampling/createMessage: the server wants a model's answer.
	Sampling func(context.Context, Asker, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error)
	// Elicitation answers elicitation/create: the server wants to ask the user.
	Elicitation func(context.Context, Asker, mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	// Roots answers roots/list: the server wants to know its working folders.
	Roots func(context.Context, Asker) ([]mcp.Root, error)
	// Log gets log messages.
	Log func(Asker, mcp.LoggingMessageNotificationParams)
	// Notification gets all other notifications but progress, for which there is
	// [Options.OnProgress].
	Notification func(Asker, mcp.JSONRPCNotification)
}

// Asker says who asks or tells.
type Asker struct {
	Conversation Conversation
	Origin       mcppool.Origin
}

// Router brings what servers ask and tell of themselves to [Handlers], and tells
// the boxes when a server's tools have changed. It comes before the pool:
//
//	router := toolbox.NewRouter(toolbox.Handlers{...})
//	pool, err := mcppool.New(&mcppool.Options{Handlers: router.PoolHandlers()})
//	box, err := toolbox.New(pool, catalog, &toolbox.Options{Router: router})
type Router struct {
	handlers Handlers

	mu    sync.Mutex // protects the field below
	boxes []*Box
}

// NewRouter makes a router.
func NewRouter(h Handlers) *Router { return &Router{handlers: h} }

// PoolHandlers are for the Options of the pool.
func (r *Router) PoolHandlers() mcppool.Handlers {
	h := mcppool.Handlers{Notification: r.notification}
	if f := r.handlers.Sampling; f != nil {
		h.Sampling = func(ctx context.Context, from mcppool.Origin, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return f(ctx, asker(from), req)
		}
	}
	if f := r.handlers.Elicitation; f != nil {
		h.Elicitation = func(ctx context.Context, from mcppool.Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			return f(ctx, asker(from), req)
		}
	}
	if f := r.handlers.Roots; f != nil {
		h.Roots = func(ctx context.Context, from mcppool.Origin) ([]mcp.Root, error) { return f(ctx, asker(from)) }
	}
	return h
}

func (r *Router) add(b *Box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes = append(r.boxes, b)
}

func (r *Router) remove(b *Box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Not in place: a notification may be on its way through the old slice.
	r.boxes = slices.DeleteFunc(slices.Clone(r.boxes), func(other *Box) bool { return other == b })
}

func (r *Router) notification(from mcppool.Origin, n mcp.JSONRPCNotification) {
	switch n.Method {
	case mcp.MethodNotificationToolsListChanged:
		r.mu.Lock()
		boxes := r.boxes
		r.mu.Unlock()
		for _, b := range boxes {
			b.listings.changed(from.Server, from.Scope)
		}
	case methodLog:
		if r.handlers.Log != nil {
			r.handlers.Log(asker(from), logParams(n.Params.AdditionalFields))
			return
		}
	}
	if r.handlers.Notification != nil {
		r.handlers.Notification(asker(from), n)
	}
}

const methodLog = "notifications/message"

// logParams reads a log message's fields; those of another type than the
// protocol's stay empty.
func logParams(fields map[string]any) (p mcp.LoggingMessageNotificationParams) {
	level, _ := fields["level"].(string)
	p.Level = mcp.LoggingLevel(level)
	p.Logger, _ = fields["logger"].(string)
	p.Data = fields["data"]
	return p
}

// asker finds the conversation that owns a session; the zero one for a scope
// that isn't of [Conversation.Scope].
func asker(from mcppool.Origin) Asker {
	project, thread, _ := mcppool.ParseScope(from.Scope)
	return Asker{Conversation: Conversation{Project: project, Thread: thread}, Origin: from}
}

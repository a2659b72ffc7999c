package mcppool

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

// FullClient is what a [Client] can do for the methods of [Session] besides
// tools. The default one can; a client of mcp-go has these methods. Those whose
// request has a cursor give one page. The errors are as those of
// [Client.CallTool].
type FullClient interface {
	ListResourcesByPage(context.Context, mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error)
	ListResourceTemplatesByPage(context.Context, mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error)
	ReadResource(context.Context, mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error)
	Subscribe(context.Context, mcp.SubscribeRequest) error
	Unsubscribe(context.Context, mcp.UnsubscribeRequest) error
	ListPromptsByPage(context.Context, mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error)
	GetPrompt(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error)
	Complete(context.Context, mcp.CompleteRequest) (*mcp.CompleteResult, error)
	SetLevel(context.Context, mcp.SetLevelRequest) error
}

// Informer is a [Client] that knows what the server said of itself when it
// connected.
type Informer interface {
	Info() *mcp.InitializeResult
}

// Info is what the server said of itself when it connected, in the form that
// the older revisions of the protocol have for it: name and version, revision,
// capabilities, instructions. It must not be changed. It is nil when the pool's
// Dial gives a client that isn't an [Informer].
func (l *Session) Info() *mcp.InitializeResult { return l.s.info }

// The methods below pass one request on, and their errors are those of
// [Session.CallTool]. With a client that isn't a [FullClient] they fail with a
// [*ConfigError] that names Options.Dial.

// ListResources gives one page of resources.
func (l *Session) ListResources(ctx context.Context, req mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	return offered(ctx, l, "resources/list", req, FullClient.ListResourcesByPage)
}

// ListResourceTemplates gives one page of resource templates.
func (l *Session) ListResourceTemplates(ctx context.Context, req mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error) {
	return offered(ctx, l, "resources/templates/list", req, FullClient.ListResourceTemplatesByPage)
}

// ReadResource reads a resource.
func (l *Session) ReadResource(ctx context.Context, req mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return offered(ctx, l, "resources/read", req, FullClient.ReadResource)
}

// Subscribe asks for a notifications/resources/updated whenever a resource
// changes, which goes to [Handlers.Notification] with the origin that the session
// has then. It lasts until [Session.Unsubscribe] or the end of the session, not
// only for this borrow. On a connection of the modern era the default client opens
// a subscriptions/listen for it, and Subscribe returns once the server has
// acknowledged it; so it must not be called by that handler.
func (l *Session) Subscribe(ctx context.Context, req mcp.SubscribeRequest) error {
	return told(ctx, l, "resources/subscribe", req, FullClient.Subscribe)
}

// Unsubscribe ends a subscription.
func (l *Session) Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error {
	return told(ctx, l, "resources/unsubscribe", req, FullClient.Unsubscribe)
}

// ListPrompts gives one page of prompts.
func (l *Session) ListPrompts(ctx context.Context, req mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error) {
	return offered(ctx, l, "prompts/list", req, FullClient.ListPromptsByPage)
}

// GetPrompt gets a prompt, filled in with arguments.
func (l *Session) GetPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return offered(ctx, l, "prompts/get", req, FullClient.GetPrompt)
}

// Complete asks for completions of an argument.
func (l *Session) Complete(ctx context.Context, req mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return offered(ctx, l, "completion/complete", req, FullClient.Complete)
}

// SetLevel sets the least severity of the log messages that the server sends,
// for the rest of the session. On a connection of the modern era nothing is sent
// for it: every later request says it.
func (l *Session) SetLevel(ctx context.Context, req mcp.SetLevelRequest) error {
	return told(ctx, l, "logging/setLevel", req, FullClient.SetLevel)
}

// offered makes one request within the borrow.
func offered[Req, Res any](ctx context.Context, l *Session, method string, req Req,
	request func(FullClient, context.Context, Req) (Res, error),
) (res Res, err error) {
	c, ok := l.s.client.(FullClient)
	if !ok {
		return res, &ConfigError{Field: "Options.Dial", Reason: "gives clients that have no " + method + ": they aren't of type FullClient"}
	}
	err = l.run(ctx, method, func() (err error) {
		res, err = request(c, ctx, req)
		if c, ok := c.(*defaultClient); ok {
			err = c.error(err)
		}
		return err
	})
	if err != nil {
		var none Res
		return none, err
	}
	return res, nil
}

// told is offered for a request whose result says nothing.
func told[Req any](ctx context.Context, l *Session, method string, req Req,
	request func(FullClient, context.Context, Req) error,
) error {
	_, err := offered(ctx, l, method, req, func(c FullClient, ctx context.Context, req Req) (struct{}, error) {
		return struct{}{}, request(c, ctx, req)
	})
	return err
}

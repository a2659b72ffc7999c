package mcppool

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Session is a session that is borrowed by [Pool.Do] or [Pool.Acquire]: as long
// as it is held, nobody else's calls reach it, unless its server is Concurrent.
// Its methods are safe for concurrent use; calls made at the same time go out at
// the same time.
type Session struct{ *lease }

// lease is what a Session holds. It doesn't refer to the Session, so that one
// that is dropped without a release can be noticed.
type lease struct {
	p *Pool
	c *conn

	mu    sync.Mutex // protects the fields below
	ended bool
	why   CloseReason // why the session must not serve others, if so
}

// errEnded is a misuse: the Session was kept beyond its borrow.
var errEnded = errors.New("mcppool: Session used after it was given back")

// newLease is a Session whose holder gives it back, or is found to have dropped it.
func newLease(p *Pool, c *conn) *Session {
	l := &Session{&lease{p: p, c: c}}
	runtime.AddCleanup(l, (*lease).reclaim, l.lease)
	return l
}

// Release gives the session back; its state is kept for the next borrower. It is
// not to be called while a method runs. Further calls do nothing.
func (l *Session) Release() { l.lease.end("") }

// Discard gives the session back to be closed, since its state is in doubt. It is
// otherwise like Release.
func (l *Session) Discard() { l.lease.end(ReasonDiscarded) }

// reclaim ends a lease that was dropped.
func (l *lease) reclaim() {
	l.end(ReasonLeaked)
}

// end gives the session back, once.
func (l *lease) end(why CloseReason) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	l.ended = true
	if l.why != "" && why != ReasonLeaked {
		why = l.why
	}
	l.mu.Unlock()
	l.p.mu.Lock()
	l.p.leaveLocked(l.c, why)
	l.p.unlock()
	l.p.released(context.Background(), l.c, why)
}

// ID names the session in logs and [Pool.Sessions]. It is never used again.
func (l *Session) ID() string { return l.c.id }

// Done is closed when the session is closed under its holder, by
// [Pool.CloseServer] and its like.
func (l *Session) Done() <-chan struct{} { return l.c.st.Killed() }

// CallTool calls a tool within the borrow. The call's Scope is that of the
// borrow, whatever it says. Errors are those of [Pool.CallTool]; after one that
// costs the session, every further call fails with [ErrSessionLost].
func (l *Session) CallTool(ctx context.Context, call Call) (*mcp.CallToolResult, error) {
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err = l.usable(ctx); err == nil {
		if err = ask(call.Check); err != nil {
			l.spoil(ReasonServerClosed)
		}
	}
	if err != nil {
		l.p.countRefused()
		return nil, &opError{op: toolOp(call.Tool), server: l.c.label, phase: phaseQueue, err: err}
	}
	done := callEnd{how: outcomeOther} // unless the client returns
	defer func() {
		l.p.mu.Lock()
		l.p.countLocked(l.c, done.how)
		l.p.mu.Unlock()
		l.spoil(done.why)
	}()
	var res *mcp.CallToolResult
	res, err, done = l.c.call(ctx, &req, &call)
	return res, err
}

// ListTools lists all tools, as [Pool.ListTools] does.
func (l *Session) ListTools(ctx context.Context) ([]mcp.Tool, error) {
	var tools []mcp.Tool
	err := l.run(ctx, "tools/list", func() (err error) {
		tools, err = l.c.listTools(ctx)
		return err
	})
	return tools, err
}

// run makes one request within the borrow.
func (l *Session) run(ctx context.Context, op string, request func() error) error {
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err := l.usable(ctx); err != nil {
		return &opError{op: op, server: l.c.label, phase: phaseQueue, err: err}
	}
	err := request()
	if err == nil {
		return nil
	}
	err, done := l.c.end(ctx, op, err)
	l.spoil(done.why)
	return err
}

// spoil notes why the session must not serve others, if so.
func (l *lease) spoil(why CloseReason) {
	if why == "" {
		return
	}
	l.mu.Lock()
	l.why = why
	l.mu.Unlock()
}

// usable looks whether a request may be made: the lease is held, and the session
// answers.
func (l *lease) usable(ctx context.Context) error {
	l.mu.Lock()
	ended, why := l.ended, l.why
	l.mu.Unlock()
	switch {
	case ended:
		return errEnded
	case l.c.st.Cause() != nil:
		return l.c.st.Cause()
	case why != "", l.c.st.Lost():
		return l.c.lostError(nil)
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return l.c.awaitAnswer(ctx) // the lease is of this session: another one wouldn't do
	}
}

// whileAlive is a ctx that also ends when c is killed, with the reason as its
// cause. The returned func ends it and waits for the goroutine that watches.
func (c *conn) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.st.Killed():
			cancel(c.st.Cause())
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

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
func (l *Session) Info() *mcp.InitializeResult { return l.c.info }

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
	c, ok := l.c.client.(FullClient)
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

package mcppool

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/lease"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/outcome"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// Borrow says which session of a server is wanted by [Pool.Do], [Pool.Acquire] and
// [Pool.ListTools].
type Borrow struct {
	// Scope names whose state the session holds, as [Call.Scope] does.
	Scope string
	// Check reports whether the server is still what the caller's configuration
	// says, as [Call.Check] does. It is asked after a connect and before the
	// session is handed out.
	Check func() bool
}

// Session is a session that is borrowed by [Pool.Do] or [Pool.Acquire]: as long
// as it is held, nobody else's calls reach it, unless its server is Concurrent.
// Its methods are safe for concurrent use; calls made at the same time go out at
// the same time.
type Session struct{ *lending }

// lending is what a Session holds. It doesn't refer to the Session, so that one
// that is dropped without a release can be noticed.
type lending struct {
	p     *Pool
	c     *conn
	scope string // for which it was borrowed
	// free is closed once nothing of it is under way. It is nil but for those of the
	// pool, for AfterConnect and BeforeClose: nobody has joined the session for them.
	free chan struct{}

	state lease.State
}

// ErrReleased is a misuse: a [Session] was used after it had been given back.
var ErrReleased = errors.New("mcppool: Session used after it was given back")

// newLease is a Session whose holder gives it back, or is found to have dropped it.
func newLease(p *Pool, c *conn, scope string) *Session {
	l := &Session{&lending{p: p, c: c, scope: scope}}
	runtime.AddCleanup(l, (*lending).reclaim, l.lending)
	return l
}

// ownLease is a Session of the pool's.
func ownLease(c *conn, scope string) *Session {
	return &Session{&lending{p: c.pool, c: c, scope: scope, free: make(chan struct{})}}
}

// handOver waits until nothing of a lease of the pool's is under way, after which others
// may use the session, and reports why they may not.
func (l *lending) handOver(ctx context.Context) error {
	l.end("")
	select {
	case <-l.free:
	case <-ctx.Done():
		return errors.New("a request of Options.AfterConnect is still under way")
	}
	if _, why := l.state.Err(); why != "" {
		return errors.New("its session was given up in Options.AfterConnect: " + why)
	}
	return nil
}

// Release gives the session back; its state is kept for the next borrower. If methods
// still run, the last of them to return gives it back. Further calls do nothing.
func (l *Session) Release() {
	l.lending.end("")
	runtime.KeepAlive(l) // until then it isn't dropped
}

// Discard gives the session back to be closed, since its state is in doubt: methods that
// still run fail with [ErrSessionLost]. Further calls do nothing.
func (l *Session) Discard() {
	l.lending.end(ReasonDiscarded)
	runtime.KeepAlive(l)
}

// reclaim ends a lease that was dropped.
func (l *lending) reclaim() { l.giveBack(l.state.Drop(string(ReasonLeaked), ErrReleased)) }

// end ends the lease, for the session to be closed if there is a reason.
func (l *lending) end(why CloseReason) { l.giveBack(l.state.End(string(why), ErrReleased)) }

// finish ends a request within the borrow.
func (l *lending) finish() { l.giveBack(l.state.Finish()) }

// giveBack gives the session back, if that is to be now.
func (l *lending) giveBack(now bool, why string) {
	switch {
	case !now:
	case l.free != nil:
		close(l.free)
	default:
		l.p.mu.Lock()
		l.p.leaveLocked(l.c, CloseReason(why))
		l.p.unlock()
		l.p.released(context.Background(), l.c, CloseReason(why))
	}
}

// ID names the session in logs and [Pool.Sessions]. It is never used again.
func (l *Session) ID() string { return l.c.id }

// Done is closed when the holder can't use the session any more: it was closed under
// him, by [Pool.CloseServer] and its like, its connection was lost, a call of his cost
// it, or he has given it back.
func (l *Session) Done() <-chan struct{} { return l.state.Done(l.watch) }

// Err says why, after Done: [ErrServerClosed], [ErrClosed], a [*SessionLostError], or
// [ErrReleased]. It is nil as long as the session can be used.
func (l *Session) Err() error { return l.lending.err() }

// CallTool calls a tool within the borrow, whose scope the call's is if it has one:
// another is a [*ConfigError]. Errors are those of [Pool.CallTool]; after one that
// costs the session, every further call fails with [ErrSessionLost].
func (l *Session) CallTool(ctx context.Context, call Call) (*mcp.CallToolResult, error) {
	if call.Scope != "" && call.Scope != l.scope {
		return nil, &ConfigError{Field: "Call.Scope", Reason: "is another than that of the borrow"}
	}
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err = l.begin(ctx); err == nil {
		defer l.finish()
		if err = ask(call.Check); err != nil {
			l.state.Spoil(string(ReasonServerClosed), ErrServerClosed)
		}
	}
	if err != nil {
		l.p.countRefused()
		return nil, &opError{op: toolOp(call.Tool), server: l.c.label, phase: phaseQueue, err: err}
	}
	done := callEnd{how: outcome.Other} // unless the client returns
	defer func() {
		l.p.mu.Lock()
		l.p.countLocked(l.c, done.how)
		l.p.mu.Unlock()
		l.spent(done)
	}()
	var res *mcp.CallToolResult
	res, err, done = l.c.call(ctx, &req, &call)
	return res, err
}

// run makes one request within the borrow.
func (l *Session) run(ctx context.Context, op string, request func() error) error {
	defer runtime.KeepAlive(l) // a lease in use isn't dropped
	if err := l.begin(ctx); err != nil {
		return &opError{op: op, server: l.c.label, phase: phaseQueue, err: err}
	}
	defer l.finish()
	l.c.current.Begin("", 0)
	defer l.c.current.End()
	err := request()
	if err == nil {
		return nil
	}
	err, done := l.c.end(ctx, op, err)
	l.spent(done)
	return err
}

// spent notes what a request has cost.
func (l *lending) spent(done callEnd) {
	switch {
	case done.why == "":
	case done.how == outcome.Closed:
		l.state.Spoil(string(done.why), ErrServerClosed)
	default:
		l.state.Spoil(string(done.why), nil)
	}
}

// begin reports whether a request may be made: the lease is held, and the session
// answers. When it may, finish follows.
func (l *lending) begin(ctx context.Context) error {
	if !l.state.Begin() {
		return ErrReleased
	}
	err := l.err()
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	default:
		err = l.c.awaitAnswer(ctx) // the lease is of this session: another one wouldn't do
	}
	if err != nil {
		l.finish()
	}
	return err
}

// err is why the session can't be used by the holder; nil when it can.
func (l *lending) err() error {
	switch err, why := l.state.Err(); {
	case err != nil:
		return err
	case why != "":
		return l.c.lostError(nil)
	case l.free != nil && !isClosed(l.c.lost):
		return nil // a kill waits for BeforeClose
	default:
		return l.c.whyOver()
	}
}

// watch sees to it that the lease is over when the session is lost or killed, and
// reports whether that is still to come.
func (l *lending) watch(over <-chan struct{}) bool {
	killed := l.c.st.Killed()
	if l.free != nil {
		killed = nil // see err
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.c.st.Status() == poolstate.Closed || isClosed(killed) || isClosed(l.c.lost) {
		return false
	}
	l.p.wg.Go(func() {
		select {
		case <-over:
		case <-killed:
			l.state.Over()
		case <-l.c.lost:
			l.state.Over()
		}
	})
	return true
}

// whileAlive is a ctx that also ends when c is killed or lost, with the reason as its
// cause. The returned func ends it and waits for the goroutine that watches.
func (c *conn) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.st.Killed():
		case <-c.lost:
		case <-ctx.Done():
			return
		}
		cancel(c.whyOver())
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

// whyOver is why c can't be used any more; nil when it can. A close wins over the loss
// that it brings about.
func (c *conn) whyOver() error {
	switch {
	case c.st.Cause() != nil:
		return c.st.Cause()
	case isClosed(c.lost):
		return c.lostError(nil)
	default:
		return nil
	}
}

// Info is what the server said of itself when it connected, in the form that
// the older revisions of the protocol have for it: name and version, revision,
// capabilities, instructions. It must not be changed. It is nil when the pool's
// Dial returns a client that isn't a [Requester].
func (l *Session) Info() *mcp.InitializeResult { return l.c.info }

// Request makes any request of the protocol, whose params are encoded as a JSON
// object, nil as none, and returns its result undecoded. Its errors are those of
// [Session.CallTool]. Tools are better called by that, which adds what the protocol
// wants with a call.
//
// The methods below are made of it. With a client that isn't a [Requester] they
// fail with a [*ConfigError] that names Options.Dial.
func (l *Session) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return offered(ctx, l, method, params, func(m *offers.Methods, ctx context.Context, params any) (json.RawMessage, error) {
		return m.Request(ctx, method, params)
	})
}

// Notify sends a notification, such as notifications/roots/list_changed. Params are
// those of Request, and so are the errors, but for an answer, which there is none of.
func (l *Session) Notify(ctx context.Context, method string, params any) error {
	_, err := offered(ctx, l, method, params, func(m *offers.Methods, ctx context.Context, params any) (struct{}, error) {
		return struct{}{}, m.Notify(ctx, method, params)
	})
	return err
}

// ListResources returns one page of resources.
func (l *Session) ListResources(ctx context.Context, req mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	return offered(ctx, l, "resources/list", req, (*offers.Methods).ListResources)
}

// ListResourceTemplates returns one page of resource templates.
func (l *Session) ListResourceTemplates(ctx context.Context, req mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error) {
	return offered(ctx, l, "resources/templates/list", req, (*offers.Methods).ListResourceTemplates)
}

// ReadResource reads a resource.
func (l *Session) ReadResource(ctx context.Context, req mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return offered(ctx, l, "resources/read", req, (*offers.Methods).ReadResource)
}

// Subscribe asks for a notifications/resources/updated whenever a resource
// changes, which goes to [Handlers.Notification] with the origin that the session
// has then. It lasts until [Session.Unsubscribe] or the end of the session, not
// only for this borrow. On a connection of the modern era the default client opens
// a subscriptions/listen for it, and Subscribe returns once the server has
// acknowledged it; so it must not be called by that handler.
func (l *Session) Subscribe(ctx context.Context, req mcp.SubscribeRequest) error {
	_, err := l.Request(ctx, string(mcp.MethodResourcesSubscribe), req.Params)
	return err
}

// Unsubscribe ends a subscription.
func (l *Session) Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error {
	_, err := l.Request(ctx, string(mcp.MethodResourcesUnsubscribe), req.Params)
	return err
}

// ListPrompts returns one page of prompts.
func (l *Session) ListPrompts(ctx context.Context, req mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error) {
	return offered(ctx, l, "prompts/list", req, (*offers.Methods).ListPrompts)
}

// GetPrompt gets a prompt, filled in with arguments.
func (l *Session) GetPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return offered(ctx, l, "prompts/get", req, (*offers.Methods).GetPrompt)
}

// Complete asks for completions of an argument.
func (l *Session) Complete(ctx context.Context, req mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return offered(ctx, l, "completion/complete", req, (*offers.Methods).Complete)
}

// SetLevel sets the least severity of the log messages that the server sends,
// for the rest of the session. On a connection of the modern era nothing is sent
// for it: every later request says it.
func (l *Session) SetLevel(ctx context.Context, req mcp.SetLevelRequest) error {
	_, err := l.Request(ctx, string(mcp.MethodSetLogLevel), req.Params)
	return err
}

// offered makes one request within the borrow.
func offered[Req, Res any](ctx context.Context, l *Session, method string, req Req,
	request func(*offers.Methods, context.Context, Req) (Res, error),
) (res Res, err error) {
	client, ok := l.c.client.(Requester)
	if !ok {
		return res, &ConfigError{Field: "Options.Dial", Reason: "returns clients that have no " + method + ": they aren't of type Requester"}
	}
	methods := offers.Of(client, unknownContent)
	err = l.run(ctx, method, func() (err error) {
		res, err = request(&methods, ctx, req)
		return publicError(l.c.server.redact, err)
	})
	if err != nil {
		var none Res
		return none, err
	}
	return res, nil
}

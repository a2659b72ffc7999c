package mcppool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/childenv"
	"github.com/mcppool/mcppool/internal/container"
	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/redact"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Client is one open connection to a server. It is safe for concurrent use.
type Client interface {
	// CallTool makes one tools/call under ctx. Params.RawArguments holds the
	// arguments as one line of JSON; Params.Arguments is what the caller of the
	// pool gave. It returns when ctx ends or Close is called, and never sends a
	// request twice. See [MarkNotSent] and [RPCError] for what it may tell.
	CallTool(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)
	// ListTools returns one page of tools.
	ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error)
	// Done is closed once the connection is lost for good. Every call returns the
	// same channel.
	Done() <-chan struct{}
	// Err says why, after Done.
	Err() error
	// Close ends the connection, makes the calls under way return, and returns
	// once nothing of it is left running. The pool calls it exactly once.
	Close() error
}

// MarkNotSent marks an error of [Client.CallTool] as one that came before anything
// was sent, such as the end of ctx before the request's turn: the session is
// spared, and the call is safe to repeat. The error itself still counts as what
// it is.
func MarkNotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

func isNotSent(err error) bool {
	var e *notSentError
	return errors.As(err, &e)
}

// Requester is a [Client] that can make any request of the protocol, for the methods
// of [Session] besides tools. The default one can.
type Requester interface {
	Client
	// Request makes one request, whose params are a JSON object or nil, and returns
	// its result undecoded. Its errors are as those of CallTool.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Notify sends a notification, whose params are a JSON object or nil.
	Notify(ctx context.Context, method string, params json.RawMessage) error
	// Info is what the server said of itself when it connected, in the form that
	// the older revisions of the protocol have for it; nil when it isn't known. It
	// isn't changed.
	Info() *mcp.InitializeResult
}

// Prober is implemented by a [Client] that knows a cheap way to find out whether
// its server answers. An error means that it doesn't. Without it, a page of tools
// is asked for.
type Prober interface {
	Probe(ctx context.Context) error
}

// ask asks whether the server behind c is alive.
func (c *conn) ask(ctx context.Context) error {
	if p, ok := c.client.(Prober); ok {
		return p.Probe(ctx)
	}
	switch _, err := c.client.ListTools(ctx, mcp.ListToolsRequest{}); {
	case err == nil:
		return nil
	case c.st.Lost() || httpconn.IsLost(err):
		return c.lostError(publicError(c.server.redact, err))
	default:
		return ctx.Err() // if that is nil, the server has answered
	}
}

// callTool makes a tools/call. The type of the default client is asked for by
// name, since what is passed through an interface goes to the heap.
func (c *conn) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call, in Served, id *int64) (*mcp.CallToolResult, error) {
	gate := c.gateOf(call, in)
	if d, ok := c.client.(*defaultClient); ok {
		return d.callTool(ctx, req, call, gate, id)
	}
	if call.Gate != nil || call.IfSession != "" { // Check was asked when the session was borrowed
		if err := c.safely("Call.Gate", gate); err != nil {
			return nil, MarkNotSent(err)
		}
	}
	res, err := c.client.CallTool(rpc.WithProgress(ctx, call.OnProgress), *req)
	return res, publicError(c.server.redact, err)
}

// defaultClient is a connection of internal/mcpconn or internal/httpconn as a
// [Requester].
type defaultClient struct {
	rpc.Conn
	redact *redact.Redactor
}

// dialDefault is the default of [Options.Dial].
func (p *Pool) dialDefault(ctx context.Context, of *conn, srv *Server) (Client, error) {
	c := &defaultClient{redact: of.server.redact}
	cfg := rpc.Config{
		Era:            rpc.Era(srv.Protocol),
		ClientInfo:     p.opts.ClientInfo,
		Hurry:          of.hurry,
		Handlers:       p.handlersOf(of),
		UnknownContent: unknownContent,
		OnPanic:        func(v any, stack []byte) { p.panicked(of.origin(), "Handlers", v, stack) },
	}
	var err error
	if srv.IsHTTP() {
		c.Conn, err = httpconn.Dial(ctx, httpconn.Config{
			URL: srv.URL, Header: srv.Header, Web: &p.web, MaxMessageSize: p.opts.maxMessage(), Config: cfg,
		})
	} else if err = p.checkContainer(srv); err == nil {
		c.Conn, err = mcpconn.Dial(ctx, p.childConfig(ctx, of, srv, cfg))
	}
	if err != nil {
		return nil, publicError(c.redact, err)
	}
	return c, nil
}

// checkContainer reports why a server that names its container can't have the sessions
// that its policy has for it.
func (p *Pool) checkContainer(srv *Server) error {
	run, ok := container.Parse(append([]string{srv.Command}, srv.Args...), p.opts.ContainerCLIs)
	if !ok || run.Name == "" || srv.Policy.Mode != PerScope && srv.Policy.Processes <= 1 && srv.Policy.Spares == 0 {
		return nil
	}
	return &ConfigError{Field: "Server.Args", Reason: "name the container (--name), of which there can be one at a time: " +
		"leave the name out, or set Policy.Mode to Exclusive, or Shared in one process and without spares"}
}

func (p *Pool) childConfig(ctx context.Context, of *conn, srv *Server, common rpc.Config) mcpconn.Config {
	secrets := of.server.redact
	secrets.Inherit(childenv.Inherited(p.opts.InheritEnv, srv.Env))
	cfg := mcpconn.Config{
		Config:  common,
		Command: srv.Command, Args: srv.Args, Dir: srv.Dir,
		Env:  childenv.Build(p.opts.InheritEnv, srv.Env),
		Eras: &p.eras, EraKey: of.server.command,
		MaxMessageSize: p.opts.maxMessage(),
		CloseTimeout:   p.opts.CloseTimeout,
		Grace:          p.opts.CloseGrace,
		TermFirst:      func() bool { return of.policy().TermFirst },
		Contain:        func(cmd *exec.Cmd) *container.Container { return p.containers.Adopt(cmd, of.id) },
		Traffic:        &p.traffic,
		OnJunk: func(line []byte, total int) {
			if p.trace.Junk != nil {
				p.trace.Junk(context.Background(), JunkInfo{of.origin(), secrets.Piece(string(line), false), total})
			}
		},
		OnLost: func() { p.lost(of) },
	}
	cfg.OnStart = func(child *mcpconn.Conn) {
		of.starting.Store(child)
		if p.trace.ProcessStarted != nil {
			p.trace.ProcessStarted(ctx, ProcessStartedInfo{of.origin(), child.Pid()})
		}
	}
	if p.opts.Command != nil {
		cfg.Prepare = func(cmd *exec.Cmd) error { return of.command(cmd) }
	}
	if p.trace.Stderr != nil { // else nobody has to look for its lines
		cfg.OnStderr = func(line []byte) {
			p.trace.Stderr(context.Background(), StderrInfo{of.origin(), secrets.Piece(string(line), false)})
		}
	}
	return cfg
}

// command runs the caller's part of a start.
func (c *conn) command(cmd *exec.Cmd) error {
	before := slices.Clone(cmd.Env) // which may be written to
	err := c.safely("Options.Command", func() error {
		return c.pool.opts.Command(c.origin(), c.srv.clone(), cmd) // which may change what it gets
	})
	c.server.redact.Inherit(childenv.Added(before, cmd.Env), nil)
	return err
}

// callTool asks gate, unless it is nil, right before the call is sent, and sets id,
// unless it is nil, to the request's.
func (c *defaultClient) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call, gate func() error, id *int64) (*mcp.CallToolResult, error) {
	r := rpc.ToolCall{
		Tool: req.Params.Name, Args: req.Params.RawArguments, Meta: call.Meta, OnProgress: call.OnProgress, ID: id, Gate: gate,
	}
	res, err := c.Conn.CallTool(ctx, r)
	return res, publicError(c.redact, err)
}

// CallTool is callTool for those who know only [Client].
func (c *defaultClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.callTool(ctx, &req, &Call{Meta: req.Params.Meta}, nil, nil)
}

func (c *defaultClient) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	list, err := c.Conn.ListTools(ctx, req)
	if err != nil {
		return nil, publicError(c.redact, err)
	}
	return &list.ListToolsResult, nil
}

// Request is that of the connection. What each era has its own way for, goes that way.
func (c *defaultClient) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var err error
	switch method {
	case string(mcp.MethodSetLogLevel):
		var req mcp.SetLevelRequest
		if err = json.Unmarshal(params, &req.Params); err == nil {
			err = c.SetLevel(ctx, req)
		}
	case string(mcp.MethodResourcesSubscribe):
		var req mcp.SubscribeRequest
		if err = json.Unmarshal(params, &req.Params); err == nil {
			err = c.Subscribe(ctx, req)
		}
	case string(mcp.MethodResourcesUnsubscribe):
		var req mcp.UnsubscribeRequest
		if err = json.Unmarshal(params, &req.Params); err == nil {
			err = c.Unsubscribe(ctx, req)
		}
	default:
		res, err := c.Conn.Request(ctx, method, params)
		return res, publicError(c.redact, err)
	}
	if err != nil {
		return nil, publicError(c.redact, err)
	}
	return json.RawMessage("{}"), nil
}

func (c *defaultClient) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return publicError(c.redact, c.Conn.Notify(ctx, method, params))
}

func (c *defaultClient) Probe(ctx context.Context) error {
	return publicError(c.redact, c.Conn.Probe(ctx))
}

// closeBy is Close with another end of the time for it.
func (c *defaultClient) closeBy(deadline time.Time) error {
	if child, ok := c.Conn.(*mcpconn.Conn); ok {
		return publicError(c.redact, child.CloseBy(deadline))
	}
	return c.Close()
}

func (c *defaultClient) Close() error { return publicError(c.redact, c.Conn.Close()) }

func (c *defaultClient) process() (pid int, stderr string) {
	_, stderr, _ = c.death()
	return c.Pid(), stderr
}

func (c *defaultClient) exit() string {
	if child, ok := c.Conn.(*mcpconn.Conn); ok {
		return child.Exit()
	}
	return ""
}

func (c *defaultClient) death() (exit, stderr, stdout string) { return tailsOf(c.redact, c.Death()) }

// tailsOf is what may be shown of the end of a process.
func tailsOf(r *redact.Redactor, d rpc.Death) (exit, stderr, stdout string) {
	return d.Exit, cleanTail(r, d.Stderr), cleanTail(r, d.Stdout)
}

// cleanTail is what may be shown of the last that a server wrote to a stream: its
// front was cut when it is as long as can be.
func cleanTail(r *redact.Redactor, stderr string) string {
	return r.Piece(stderr, len(stderr) >= mcpconn.StderrTail)
}

// configFields are the pool's names for those of internal/mcpconn.
var configFields = map[string]string{"Dir": "Server.Dir", "Meta": "Call.Meta", "params": "params"}

// publicError makes the errors of a connection the pool's, without secrets. Those of a
// custom client are so already, but for the secrets.
func publicError(r *redact.Redactor, err error) error {
	if err == nil {
		return nil // before the variables below, which go to the heap
	}
	var (
		config  *rpc.ConfigError
		start   *rpc.StartError
		answer  *rpc.Error
		notSent *rpc.NotSentError

		itsAnswer  *RPCError
		itsNotSent *notSentError
	)
	switch {
	case errors.As(err, &itsAnswer):
		clean := RPCError{Code: itsAnswer.Code, Message: r.Text(itsAnswer.Message), Data: r.JSON(itsAnswer.Data)}
		if clean.Message == itsAnswer.Message && bytes.Equal(clean.Data, itsAnswer.Data) {
			return err
		}
		return &clean
	case errors.As(err, &itsNotSent):
		if !r.Tells(itsNotSent.err) {
			return err
		}
		return &notSentError{publicError(r, itsNotSent.err)}
	case errors.As(err, &config):
		return &ConfigError{Field: configFields[config.Field], Reason: r.Text(config.Reason)}
	case errors.As(err, &start):
		return &StartError{
			Phase: start.Phase, Exit: start.Exit, Err: publicError(r, start.Err),
			Stderr: cleanTail(r, start.Stderr), Stdout: cleanTail(r, start.Stdout),
		}
	case errors.As(err, &answer):
		return &RPCError{Code: answer.Code, Message: r.Piece(answer.Message, false), Data: r.JSON(answer.Data)}
	case errors.As(err, &notSent):
		return &notSentError{r.Error(notSent.Err)}
	default:
		return r.Error(err)
	}
}

// ownError is the error of a custom Dial, without secrets: a StartError is a copy, since
// the original may be returned for another server too.
func (c *conn) ownError(err error) error {
	var start *StartError
	if !errors.As(err, &start) {
		return c.server.redact.Error(err)
	}
	own, secrets := *start, c.server.redact
	own.Stderr, own.Stdout, own.Err = secrets.Text(own.Stderr), secrets.Text(own.Stdout), secrets.Error(own.Err)
	return &own
}

// safely runs one of the caller's funcs. A panic of it is reported, and becomes an
// error.
func (c *conn) safely(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.pool.panicked(c.origin(), name, v, debug.Stack())
			err = fmt.Errorf("%s panicked: %s", name, panicText(v))
		}
	}()
	return f()
}

// panicText is what is safe to say of a panic's value: the runtime's own words,
// or else its type.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", v)
}

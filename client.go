package mcppool

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/childenv"
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

// isConnectionError tells mcp-go's report of a broken transport from an error
// of a server that is alive.
func isConnectionError(err error) bool { return httpconn.IsLost(err) }

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
	case c.st.Lost() || isConnectionError(err):
		return c.lostError(err)
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
	death() (exit, stderr, stdout string)
}

// callTool makes a tools/call. The type of the default client is asked for by
// name, since what is passed through an interface goes to the heap.
func (c *conn) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call, id *int64) (*mcp.CallToolResult, error) {
	if d, ok := c.client.(*defaultClient); ok {
		return d.callTool(ctx, req, call, id)
	}
	return c.client.CallTool(ctx, *req)
}

// defaultClient is a connection of internal/mcpconn or internal/httpconn as a
// [Client]. What it inherits makes it an [Informer] and, but for the errors, a
// [FullClient].
type defaultClient struct {
	connection
	redact *redact.Redactor
}

// connection is one with the typed requests of a server's offers.
type connection interface {
	rpc.Conn
	FullClient
}

// dialDefault is the default of [Options.Dial].
func (p *Pool) dialDefault(ctx context.Context, of *conn) (Client, error) {
	c := &defaultClient{redact: of.server.redact}
	cfg := rpc.Config{
		Era:            rpc.Era(of.srv.Protocol),
		ClientInfo:     p.opts.clientInfo(),
		Hurry:          of.hurry,
		Handlers:       p.handlersOf(of),
		UnknownContent: unknownContent,
		OnPanic:        func(v any, stack []byte) { p.panicked(of.origin(), "Handlers", v, stack) },
	}
	var err error
	if of.srv.IsHTTP() {
		c.connection, err = httpconn.Dial(ctx, httpconn.Config{URL: of.srv.URL, Header: of.srv.Header, Web: &p.web, Config: cfg})
	} else {
		c.connection, err = mcpconn.Dial(ctx, p.childConfig(ctx, of, cfg))
	}
	if err != nil {
		return nil, c.error(err)
	}
	return c, nil
}

func (p *Pool) childConfig(ctx context.Context, of *conn, common rpc.Config) mcpconn.Config {
	srv, secrets := &of.srv, of.server.redact
	cfg := mcpconn.Config{
		Config:  common,
		Command: srv.Command, Args: srv.Args, Dir: srv.Dir,
		Env:  childenv.Build(p.opts.InheritEnv, srv.Env),
		Eras: &p.eras, EraKey: of.server.command,
		MaxMessageSize: p.opts.maxMessageSize(),
		CloseTimeout:   p.opts.closeTimeout(),
		Traffic:        &p.traffic,
		OnJunk: func(line []byte, total int) {
			if p.trace.Junk != nil {
				p.trace.Junk(context.Background(), JunkInfo{of.origin(), secrets.Piece(string(line), false), total})
			}
		},
		OnLost: func() { p.lost(of) },
	}
	if p.trace.ProcessStarted != nil {
		cfg.OnStart = func(pid int) { p.trace.ProcessStarted(ctx, ProcessStartedInfo{of.origin(), pid}) }
	}
	if p.trace.Stderr != nil { // else nobody has to look for its lines
		cfg.OnStderr = func(line []byte) {
			p.trace.Stderr(context.Background(), StderrInfo{of.origin(), secrets.Piece(string(line), false)})
		}
	}
	return cfg
}

// callTool sets id, unless it is nil, to the request's.
func (c *defaultClient) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call, id *int64) (*mcp.CallToolResult, error) {
	r := rpc.ToolCall{
		Tool: req.Params.Name, Args: req.Params.RawArguments, Meta: call.Meta, OnProgress: call.OnProgress, ID: id,
	}
	if check := call.Check; check != nil {
		r.Gate = func() error { return ask(check) }
	}
	res, err := c.connection.CallTool(ctx, r)
	return res, c.error(err)
}

// CallTool is callTool for those who know only [Client].
func (c *defaultClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.callTool(ctx, &req, &Call{Meta: req.Params.Meta}, nil)
}

func (c *defaultClient) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	list, err := c.connection.ListTools(ctx, req)
	if err != nil {
		return nil, c.error(err)
	}
	return &list.ListToolsResult, nil
}

func (c *defaultClient) Probe(ctx context.Context) error { return c.error(c.connection.Probe(ctx)) }

func (c *defaultClient) Close() error { return c.error(c.connection.Close()) }

func (c *defaultClient) process() (pid int, stderr string) {
	_, stderr, _ = c.death()
	return c.Pid(), stderr
}

func (c *defaultClient) death() (exit, stderr, stdout string) {
	d := c.Death()
	return d.Exit, cleanTail(c.redact, d.Stderr), cleanTail(c.redact, d.Stdout)
}

// cleanTail is what may be shown of the last that a server wrote to a stream: its
// front was cut when it is as long as can be.
func cleanTail(r *redact.Redactor, stderr string) string {
	return r.Piece(stderr, len(stderr) >= mcpconn.StderrTail)
}

// configFields are the pool's names for those of internal/mcpconn.
var configFields = map[string]string{"Dir": "Server.Dir", "Meta": "Call.Meta"}

// error makes the errors of the connection the pool's, without secrets.
func (c *defaultClient) error(err error) error {
	if err == nil {
		return nil // before the variables below, which go to the heap
	}
	var (
		config  *rpc.ConfigError
		start   *rpc.StartError
		answer  *rpc.Error
		notSent *rpc.NotSentError
	)
	switch {
	case errors.As(err, &config):
		return &ConfigError{Field: configFields[config.Field], Reason: c.redact.Text(config.Reason)}
	case errors.As(err, &start):
		return &StartError{
			Phase: start.Phase, Exit: start.Exit, Err: c.error(start.Err),
			Stderr: cleanTail(c.redact, start.Stderr), Stdout: cleanTail(c.redact, start.Stdout),
		}
	case errors.As(err, &answer):
		return &RPCError{Code: answer.Code, Message: c.redact.Piece(answer.Message, false), Data: c.redact.JSON(answer.Data)}
	case errors.As(err, &notSent):
		return &notSentError{c.redact.Error(notSent.Err)}
	default:
		return c.redact.Error(err)
	}
}

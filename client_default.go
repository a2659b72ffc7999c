package mcppool

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/childenv"
	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/redact"
	"github.com/mcppool/mcppool/internal/rpc"
)

// defaultClient is a connection of internal/mcpconn or internal/httpconn as a
// [Client]. What it inherits makes it an [Informer] and, but for the errors, a
// [FullClient].
type defaultClient struct {
	conn
	redact *redact.Redactor
}

// conn is a connection with the typed requests of a server's offers.
type conn interface {
	rpc.Conn
	FullClient
}

type eras = mcpconn.Eras

// dialDefault is the default of [Options.Dial].
func (p *Pool) dialDefault(ctx context.Context, s *session) (Client, error) {
	c := &defaultClient{redact: s.group.redact}
	cfg := rpc.Config{
		Era:            rpc.Era(s.srv.Protocol),
		ClientInfo:     p.opts.clientInfo(),
		Hurry:          s.hurry,
		Handlers:       p.handlersOf(s),
		UnknownContent: unknownContent,
		OnPanic: func(v any, stack []byte) {
			p.log(slog.LevelError, "mcppool: a handler panicked", s,
				slog.String("panic", panicText(v)), slog.String("stack", string(stack)))
		},
	}
	var err error
	if s.srv.IsHTTP() {
		c.conn, err = httpconn.Dial(ctx, httpconn.Config{URL: s.srv.URL, Header: s.srv.Header, Web: &p.web, Config: cfg})
	} else {
		c.conn, err = mcpconn.Dial(ctx, p.childConfig(ctx, s, cfg))
	}
	if err != nil {
		return nil, c.error(err)
	}
	return c, nil
}

func (p *Pool) childConfig(ctx context.Context, s *session, common rpc.Config) mcpconn.Config {
	srv, secrets := &s.srv, s.group.redact
	cfg := mcpconn.Config{
		Config:  common,
		Command: srv.Command, Args: srv.Args, Dir: srv.Dir,
		Env:  childenv.Build(p.opts.InheritEnv, srv.Env),
		Eras: &p.eras, EraKey: s.group.command,
		MaxMessageSize: p.opts.maxMessageSize(),
		CloseTimeout:   p.opts.closeTimeout(),
		Traffic:        &p.traffic,
		OnJunk: func(line []byte, total int) {
			clean := secrets.Piece(string(line), false)
			p.log(slog.LevelDebug, "mcppool: no message on stdout", s, slog.Int("lines", total), slog.String("line", clean))
			if p.trace.Junk != nil {
				p.trace.Junk(s.origin(), clean, total)
			}
		},
		OnLost: func() { p.lostSession(s) },
	}
	if p.trace.ProcessStarted != nil {
		cfg.OnStart = func(pid int) { p.trace.ProcessStarted(ctx, s.origin(), pid) }
	}
	if p.trace.Stderr != nil { // else nobody has to look for its lines
		cfg.OnStderr = func(line []byte) {
			p.trace.Stderr(s.origin(), secrets.Piece(string(line), false))
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
	res, err := c.conn.CallTool(ctx, r)
	return res, c.error(err)
}

// CallTool is callTool for those who know only [Client].
func (c *defaultClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.callTool(ctx, &req, &Call{Meta: req.Params.Meta}, nil)
}

func (c *defaultClient) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	list, err := c.conn.ListTools(ctx, req)
	if err != nil {
		return nil, c.error(err)
	}
	return &list.ListToolsResult, nil
}

func (c *defaultClient) Probe(ctx context.Context) error { return c.error(c.conn.Probe(ctx)) }

func (c *defaultClient) Close() error { return c.error(c.conn.Close()) }

func (c *defaultClient) process() (pid int, stderr string) {
	_, stderr = c.death()
	return c.Pid(), stderr
}

func (c *defaultClient) death() (exit, stderr string) {
	d := c.Death()
	return d.Exit, cleanTail(c.redact, d.Stderr)
}

// cleanTail is what may be shown of the last that a server wrote to stderr: its
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
		return &StartError{Phase: start.Phase, Exit: start.Exit, Stderr: cleanTail(c.redact, start.Stderr), Err: c.error(start.Err)}
	case errors.As(err, &answer):
		return &RPCError{Code: answer.Code, Message: c.redact.Piece(answer.Message, false), Data: c.redact.JSON(answer.Data)}
	case errors.As(err, &notSent):
		return &notSentError{c.redact.Error(notSent.Err)}
	default:
		return c.redact.Error(err)
	}
}

package mcppool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// stdioClient is the default client of a child process: mcp-go's client for the
// handshake and all that is rare, and the connection itself for tools/call.
type stdioClient struct {
	conn     *stdio.Conn
	mcp      *client.Client
	redact   *redactor
	handlers *Handlers
	from     Origin
	info     *mcp.InitializeResult
	// meta is the _meta of every request of a modern connection; nil on others.
	meta     map[string]any
	metaText json.RawMessage
	unlisten func() // ends the subscription; nil without one

	progressMu sync.Mutex // protects the fields below
	progress   map[string]func(mcp.ProgressNotification)
	lastToken  uint64
}

// dialStdio starts the server of s and connects to it.
func (p *Pool) dialStdio(ctx context.Context, s *session) (*stdioClient, error) {
	d := &stdioDialer{p: p, s: s, redact: newRedactor(&s.srv)}
	if err := d.look(); err != nil {
		return nil, err
	}
	switch s.srv.Protocol {
	case ProtocolLegacy, ProtocolModern:
		c, err := d.start()
		if err != nil {
			return nil, err
		}
		return d.finish(ctx, c, s.srv.Protocol, nil)
	}
	known := p.eras.get(s.group.command)
	if known == ProtocolLegacy {
		c, err := d.start()
		if err != nil {
			return nil, err
		}
		c, err = d.finish(ctx, c, ProtocolLegacy, nil)
		var rpc *RPCError
		if errors.As(err, &rpc) { // it was replaced by one that has no initialize
			p.eras.set(s.group.command, ProtocolAuto)
		}
		return c, err
	}
	return d.ask(ctx, known)
}

// stdioDialer is one attempt to connect, which may take two processes.
type stdioDialer struct {
	p      *Pool
	s      *session
	redact *redactor
	cfg    proc.Config
}

// look finds the program and the directory.
func (d *stdioDialer) look() error {
	srv := &d.s.srv
	dir, err := srv.absDir()
	if err != nil {
		return &ConfigError{Field: "Server.Dir", Reason: "is relative, and the host's own directory is not known"}
	}
	if dir != "" {
		switch info, err := os.Stat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return &ConfigError{Field: "Server.Dir", Reason: fmt.Sprintf("doesn't exist: %q", dir)}
		case err != nil:
			return &ConfigError{Field: "Server.Dir", Reason: fmt.Sprintf("can't be read: %q", dir)}
		case !info.IsDir():
			return &ConfigError{Field: "Server.Dir", Reason: fmt.Sprintf("isn't a directory: %q", dir)}
		}
	}
	env := childEnv(d.p.opts.InheritEnv, srv.Env)
	path, err := proc.LookPath(srv.Command, dir, env)
	if err != nil {
		return &StartError{Phase: "start", Err: d.redact.error(err)}
	}
	d.cfg = proc.Config{Path: path, Args: srv.Args, Env: env, Dir: dir}
	return nil
}

// start starts a process; nothing is sent to it yet.
func (d *stdioDialer) start() (*stdioClient, error) {
	c := &stdioClient{redact: d.redact, handlers: &d.p.opts.Handlers, from: d.s.origin()}
	conn, err := stdio.Start(stdio.Config{
		Proc:           d.cfg,
		MaxMessageSize: d.p.opts.maxMessageSize(),
		CloseTimeout:   d.p.opts.closeTimeout(),
		OnNotification: c.notify,
		OnJunk: func(line []byte, total int) {
			d.p.log(slog.LevelDebug, "mcppool: no message on stdout", d.s,
				slog.Int("lines", total), slog.String("line", d.redact.text(string(line))))
		},
		OnPanic: func(v any, stack []byte) {
			d.p.log(slog.LevelError, "mcppool: a handler panicked", d.s,
				slog.String("panic", panicText(v)), slog.String("stack", string(stack)))
		},
	})
	if err != nil {
		return nil, &StartError{Phase: "start", Err: d.redact.error(err)}
	}
	c.conn = conn
	return c, nil
}

// ask finds the era of a server out. One that is known to be modern has all the
// time there is to say so again.
func (d *stdioDialer) ask(ctx context.Context, known Protocol) (*stdioClient, error) {
	c, err := d.start()
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	probe, cancel := ctx, context.CancelFunc(func() {})
	if known != ProtocolModern {
		probe, cancel = context.WithTimeout(ctx, d.s.probeTime(ctx))
	}
	answer, err := c.conn.SendRequest(probe, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      mcp.NewRequestId(int64(0)),
		Method:  string(mcp.MethodServerDiscover),
		Params:  map[string]any{"_meta": d.modernMeta(mcp.LATEST_PROTOCOL_VERSION)},
	})
	cancel()
	silence := time.Duration(0)
	switch {
	case err == nil && d.isModern(answer):
		c, err = d.finish(ctx, c, ProtocolModern, answer)
		if err == nil {
			d.p.eras.set(d.s.group.command, ProtocolModern)
		}
		return c, err
	case err == nil: // it lives, and has never heard of the question
	case ctx.Err() != nil:
		return nil, d.fail(c, ctx.Err())
	default:
		silence = time.Since(asked)
		c.discard()
		if c, err = d.start(); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	c, err = d.finish(ctx, c, ProtocolLegacy, nil)
	// A server that is as slow to begin again was not silent but starting, so it
	// is asked again another time.
	if err == nil && (silence == 0 || time.Since(begun) < silence) {
		d.p.eras.set(d.s.group.command, ProtocolLegacy)
	}
	return c, err
}

func (d *stdioDialer) isModern(answer *transport.JSONRPCResponse) bool {
	if answer.Error == nil {
		return isModernAnswer(answer.Result)
	}
	var unsupported mcp.UnsupportedProtocolVersionError
	return errors.As(answer.Error.AsError(), &unsupported) && isModernAnswer(mustMarshal(map[string]any{
		"supportedVersions": unsupported.Supported,
	}))
}

// probeTime is how long a server may be silent on a question that it may not
// know.
func (s *session) probeTime(ctx context.Context) time.Duration {
	d := probeTime
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	if !s.hurry.IsZero() {
		d = min(d, time.Until(s.hurry)/2)
	}
	return d
}

// finish makes the connection of an era. answer is what the server said to
// server/discover, so that it isn't asked twice.
func (d *stdioDialer) finish(ctx context.Context, c *stdioClient, era Protocol, answer *transport.JSONRPCResponse) (*stdioClient, error) {
	opts := d.p.clientOptions(d.s)
	if era == ProtocolModern {
		opts = append(opts, client.WithDiscoverTimeout(-1), client.WithMaxInputRoundTrips(1))
	} else {
		opts = append(opts, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	if answer != nil && answer.Error != nil {
		answer = nil // it named the versions that it speaks; mcp-go chooses one
	}
	c.mcp = client.NewClient(stdioWire{&wire{Interface: c.conn, discovered: answer}, c.conn}, opts...)
	err := c.mcp.Start(context.WithoutCancel(ctx))
	if err == nil {
		req := mcp.InitializeRequest{}
		req.Params.ClientInfo = d.p.opts.clientInfo()
		c.info, err = rpc(ctx, func(ctx context.Context) (*mcp.InitializeResult, error) {
			return c.mcp.Initialize(ctx, req)
		})
	}
	modern := mcp.IsModernProtocol(c.mcp.ProtocolVersion())
	if err == nil && era == ProtocolModern && !modern {
		err = errors.New("server speaks no modern revision of the protocol")
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, d.fail(c, err)
	}
	if modern {
		c.meta = d.modernMeta(c.mcp.ProtocolVersion())
		c.metaText = mustMarshal(c.meta)
		if changes := c.mcp.GetServerCapabilities().Tools; changes != nil && changes.ListChanged && c.handlers.Notification != nil {
			c.listen()
		}
	}
	return c, nil
}

// listen asks a modern server to tell when its tools change, which older ones do
// unasked. The request stays open as long as the connection; without it the
// server is as good as one that doesn't tell.
func (c *stdioClient) listen() {
	stop, err := c.mcp.ListenAsync(context.Background(), mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
	if err == nil {
		c.unlisten = stop
	}
}

// fail ends c and says why it didn't connect.
func (d *stdioDialer) fail(c *stdioClient, err error) error {
	start := &StartError{Phase: "connect"}
	select {
	case <-c.conn.Done():
		start.Exit, start.Stderr = c.death()
		err = c.Err()
	default:
		start.Stderr = d.redact.text(c.conn.StderrTail())
	}
	start.Err = d.redact.error(err)
	c.discard()
	return start
}

// modernMeta is what every request of a modern connection carries, see
// https://modelcontextprotocol.io/specification/2026-07-28/basic.
func (d *stdioDialer) modernMeta(version string) map[string]any {
	h := &d.p.opts.Handlers
	var caps mcp.ClientCapabilities
	if h.Sampling != nil {
		caps.Sampling = &mcp.SamplingCapability{}
	}
	if h.Elicitation != nil {
		caps.Elicitation = &mcp.ElicitationCapability{}
	}
	if h.Roots != nil {
		caps.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	return map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         d.p.opts.clientInfo(),
		mcp.MetaKeyClientCapabilities: caps,
	}
}

func (c *stdioClient) callTool(ctx context.Context, req *mcp.CallToolRequest, call *Call) (*mcp.CallToolResult, error) {
	r := stdio.Request{Tool: req.Params.Name, Args: req.Params.RawArguments, Meta: c.metaText}
	if check := call.Check; check != nil {
		r.Gate = func() error { return ask(check) }
	}
	if call.Meta != nil || call.OnProgress != nil {
		meta, done, err := c.callMeta(call)
		if err != nil {
			return nil, err
		}
		defer done()
		r.Meta, r.Progress = meta, call.OnProgress != nil
	}
	answer, err := c.conn.Call(ctx, r)
	if err != nil {
		return nil, c.error(err)
	}
	defer answer.Release()
	res, err := toolresult.DecodeScanned(answer.Result, answer.Long, unknownContent)
	if err != nil {
		return nil, fmt.Errorf("undecodable result: %w", err)
	}
	return res, nil
}

// callMeta is the _meta of a call that has more in it than usual. done ends the
// delivery of progress.
func (c *stdioClient) callMeta(call *Call) (_ json.RawMessage, done func(), err error) {
	fields := maps.Clone(c.meta)
	if fields == nil {
		fields = make(map[string]any)
	}
	if call.Meta != nil {
		maps.Copy(fields, call.Meta.AdditionalFields)
		if call.Meta.ProgressToken != nil {
			fields["progressToken"] = call.Meta.ProgressToken
		}
	}
	done = func() {}
	if call.OnProgress != nil {
		// Never used twice on a connection, so that progress which comes late
		// reaches nobody.
		c.progressMu.Lock()
		c.lastToken++
		token := "p" + strconv.FormatUint(c.lastToken, 10)
		if c.progress == nil {
			c.progress = make(map[string]func(mcp.ProgressNotification))
		}
		c.progress[token] = call.OnProgress
		c.progressMu.Unlock()
		fields["progressToken"] = token
		done = func() {
			c.progressMu.Lock()
			delete(c.progress, token)
			c.progressMu.Unlock()
		}
	}
	meta, err := marshal(fields)
	if err != nil {
		done()
		return nil, nil, &ConfigError{Field: "Call.Meta", Reason: "can't be encoded: " + encodeReason(err)}
	}
	return meta, done, nil
}

// notify gets the notifications of the connection, in order.
func (c *stdioClient) notify(method string, params json.RawMessage) {
	if method != string(mcp.MethodNotificationProgress) {
		c.handlers.notify(c.from, method, params)
		return
	}
	n := mcp.ProgressNotification{}
	n.Method = method
	if json.Unmarshal(params, &n.Params) != nil {
		return
	}
	token, _ := n.Params.ProgressToken.(string)
	c.progressMu.Lock()
	f := c.progress[token]
	c.progressMu.Unlock()
	if f != nil {
		f(n)
	}
}

// CallTool is callTool for those who know only [Client].
func (c *stdioClient) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.callTool(ctx, &req, &Call{Meta: req.Params.Meta})
}

func (c *stdioClient) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	res, err := rpc(ctx, func(ctx context.Context) (*mcp.ListToolsResult, error) {
		return c.mcp.ListToolsByPage(ctx, req)
	})
	return res, c.error(err)
}

// error makes the errors of the connection the pool's, without secrets.
func (c *stdioClient) error(err error) error {
	var (
		answer  *stdio.Error
		notSent *stdio.NotSentError
		rpc     *RPCError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return &RPCError{Code: answer.Code, Message: c.redact.text(answer.Message), Data: answer.Data}
	case errors.As(err, &rpc):
		rpc.Message = c.redact.text(rpc.Message)
		return rpc
	case errors.As(err, &notSent):
		return &notSentError{c.redact.error(notSent.Err)}
	default:
		return c.redact.error(err)
	}
}

func (c *stdioClient) Done() <-chan struct{} { return c.conn.Done() }

func (c *stdioClient) Err() error {
	var dead *stdio.DeadError
	if err := c.conn.Err(); errors.As(err, &dead) {
		return dead.Reason
	} else {
		return err
	}
}

func (c *stdioClient) Info() *mcp.InitializeResult { return c.info }

func (c *stdioClient) process() (pid int, stderr string) {
	return c.conn.Pid(), c.redact.text(c.conn.StderrTail())
}

func (c *stdioClient) death() (exit, stderr string) {
	var dead *stdio.DeadError
	if errors.As(c.conn.Err(), &dead) {
		if dead.Exited {
			exit = dead.Exit.String()
		}
		stderr = c.redact.text(dead.StderrTail)
	}
	return exit, stderr
}

func (c *stdioClient) Close() error {
	err := c.conn.Close()
	if c.unlisten != nil {
		c.unlisten()
	}
	return err
}

// discard ends a connection that never served: there is no state to save.
func (c *stdioClient) discard() {
	c.conn.Kill()
	_ = c.conn.Close()
}

func mustMarshal(v any) json.RawMessage {
	raw, err := marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return raw
}

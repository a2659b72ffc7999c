package mcpconn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// childDialer is one attempt to connect to a child, which may take two processes.
type childDialer struct {
	cfg  *Config
	proc proc.Config
}

func dialChild(ctx context.Context, cfg *Config) (*Conn, error) {
	d := &childDialer{cfg: cfg}
	if err := d.look(); err != nil {
		return nil, err
	}
	if cfg.Era != Auto {
		return d.connect(ctx, cfg.Era)
	}
	known := cfg.Eras.get(cfg.EraKey)
	if known != Legacy {
		return d.ask(ctx, known)
	}
	c, err := d.connect(ctx, Legacy)
	var answer *RPCError
	if errors.As(err, &answer) { // it was replaced by one that has no initialize
		cfg.Eras.set(cfg.EraKey, Auto)
	}
	return c, err
}

// look finds the program and the directory.
func (d *childDialer) look() error {
	dir := d.cfg.Dir
	if dir != "" {
		bad := func(reason string) error { return &ConfigError{Field: "Dir", Reason: reason} }
		abs, err := filepath.Abs(dir)
		if err != nil {
			return bad("is relative, and the host's own directory is not known")
		}
		switch info, err := os.Stat(abs); {
		case errors.Is(err, fs.ErrNotExist):
			return bad(fmt.Sprintf("doesn't exist: %q", abs))
		case err != nil:
			return bad(fmt.Sprintf("can't be read: %q", abs))
		case !info.IsDir():
			return bad(fmt.Sprintf("isn't a directory: %q", abs))
		}
		dir = abs // a relative command is looked up against it
	}
	path, err := proc.LookPath(d.cfg.Command, dir, d.cfg.Env)
	if err != nil {
		return &StartError{Phase: "start", Err: err}
	}
	d.proc = proc.Config{Path: path, Args: d.cfg.Args, Env: d.cfg.Env, Dir: dir}
	return nil
}

// start starts a process; nothing is sent to it yet.
func (d *childDialer) start() (*Conn, error) {
	c := &Conn{cfg: d.cfg, life: context.Background()}
	child, err := stdio.Start(stdio.Config{
		Proc:           d.proc,
		MaxMessageSize: d.cfg.MaxMessageSize,
		CloseTimeout:   d.cfg.CloseTimeout,
		OnNotification: c.notified,
		OnJunk:         d.cfg.OnJunk,
		OnStderr:       d.cfg.OnStderr,
		OnPanic:        d.cfg.OnPanic,
		OnLost:         d.cfg.OnLost,
	})
	if err != nil {
		return nil, &StartError{Phase: "start", Err: err}
	}
	c.child, c.sender = child, child
	return c, nil
}

// connect starts a process and makes the connection of an era.
func (d *childDialer) connect(ctx context.Context, era Era) (*Conn, error) {
	c, err := d.start()
	if err != nil {
		return nil, err
	}
	return d.finish(ctx, c, era, nil)
}

// ask finds the era of a server out. One that is known to be modern has all the
// time there is to say so again.
func (d *childDialer) ask(ctx context.Context, known Era) (*Conn, error) {
	c, err := d.start()
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	probe, stop := ctx, func() {}
	if known != Modern {
		probe, stop = c.untilSilent(ctx)
	}
	answer, err := c.child.SendRequest(probe, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      mcp.NewRequestId(discoverID),
		Method:  string(mcp.MethodServerDiscover),
		Params:  map[string]any{"_meta": d.cfg.metaOf(mcp.LATEST_PROTOCOL_VERSION).fields},
	})
	stop()
	silence := time.Duration(0) // of a server that neither answered nor exited
	switch {
	case err == nil && isModernAnswer(answer):
		c, err = d.finish(ctx, c, Modern, answer)
		if err == nil {
			d.cfg.Eras.set(d.cfg.EraKey, Modern)
		}
		return c, err
	case err == nil: // it lives, and has never heard of the question
	case ctx.Err() != nil:
		return nil, c.failed(ctx.Err())
	default:
		if context.Cause(probe) == errSilent {
			silence = time.Since(asked)
		}
		c.discard()
		if c, err = d.start(); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	c, err = d.finish(ctx, c, Legacy, nil)
	// A server that is as slow to begin again was not silent but starting, so it
	// is asked again another time.
	if err == nil && (silence == 0 || time.Since(begun) < silence) {
		d.cfg.Eras.set(d.cfg.EraKey, Legacy)
	}
	return c, err
}

var errSilent = errors.New("server is silent on server/discover")

// untilSilent is a ctx for a question that the server may not know. It ends when
// the server has been silent for a while. Where it can be seen that the server has
// not read the question yet, the while has not begun: npx reads nothing until it
// has installed the package, and to end it in the middle would not make it faster.
// stop ends the ctx, and waits for the goroutine that watches.
func (c *Conn) untilSilent(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		patience := c.cfg.silence(ctx)
		tick := time.NewTicker(max(patience/8, time.Millisecond))
		defer tick.Stop()
		since := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if n, known := c.child.Unread(); known && n > 0 {
					since, patience = now, c.cfg.silence(ctx)
				} else if now.Sub(since) >= patience {
					cancel(errSilent)
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

// finish makes the connection of an era. answer is what the server said to
// server/discover, so that it isn't asked twice.
func (d *childDialer) finish(ctx context.Context, c *Conn, era Era, answer *transport.JSONRPCResponse) (*Conn, error) {
	opts := d.cfg.clientOptions()
	if era == Modern {
		opts = append(opts, client.WithDiscoverTimeout(-1))
	} else {
		opts = append(opts, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	if answer != nil && answer.Error != nil {
		answer = nil // it named the versions that it speaks; mcp-go chooses one
	}
	c.mcp = client.NewClient(stdioWire{&wire{Interface: c.child, discovered: answer}, c.child}, opts...)
	err := c.mcp.Start(context.WithoutCancel(ctx))
	if err == nil {
		err = c.initialize(ctx, era)
	}
	if err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// initialize makes the handshake, or what modern connections have instead.
func (c *Conn) initialize(ctx context.Context, era Era) error {
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = c.cfg.ClientInfo
	info, err := rpc(ctx, func(ctx context.Context) (*mcp.InitializeResult, error) {
		return c.mcp.Initialize(ctx, req)
	})
	modern := mcp.IsModernProtocol(c.mcp.ProtocolVersion())
	if err == nil && era == Modern && !modern {
		err = errNotModern
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return err
	}
	c.info = info
	if modern {
		c.meta.Store(c.cfg.metaOf(c.mcp.ProtocolVersion()))
		changes := info.Capabilities.Tools
		if c.child != nil && changes != nil && changes.ListChanged && c.cfg.Handlers.Notification != nil {
			c.listenForTools()
		}
	}
	return nil
}

// failed ends c and says why it didn't connect.
func (c *Conn) failed(err error) error {
	start := &StartError{Phase: "connect", Err: err}
	select {
	case <-c.child.Done():
		start.Err = c.Err()
		start.Exit, start.Stderr = c.Death()
	default:
		start.Stderr = c.child.StderrTail()
	}
	c.discard()
	return start
}

// discard ends a child that never served: there is no state to save.
func (c *Conn) discard() {
	c.child.Kill()
	_ = c.Close()
}

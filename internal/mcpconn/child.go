package mcpconn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// childDialer is one attempt to connect to a child, which may take two processes.
type childDialer struct {
	cfg  *Config
	proc proc.Config
	wire *wire // of the newest process
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

// start starts a process and a client for it; nothing is sent yet.
func (d *childDialer) start(ctx context.Context) (*Conn, error) {
	c := &Conn{cfg: d.cfg, life: context.Background()}
	child, err := stdio.Start(stdio.Config{
		Proc:           d.proc,
		MaxMessageSize: d.cfg.MaxMessageSize,
		CloseTimeout:   d.cfg.CloseTimeout,
		Traffic:        d.cfg.Traffic,
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
	told := false
	defer func() {
		if !told { // OnStart panics
			c.discard()
		}
	}()
	if d.cfg.OnStart != nil {
		d.cfg.OnStart(child.Pid())
	}
	told = true
	growStack()
	d.wire = &wire{Interface: child}
	// How long a server may be silent is decided by a question.
	opts := append(d.cfg.clientOptions(), client.WithDiscoverTimeout(-1))
	c.mcp = client.NewClient(stdioWire{d.wire, child}, opts...)
	if err := c.mcp.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// growStack makes room on the stack for decoding an answer, while the server starts
// and there is time: a connect runs on a fresh goroutine, whose stack would have to
// grow, twice or more, when the answer is there.
//
//go:noinline
func growStack() {
	var room [12 << 10]byte
	runtime.KeepAlive(room[:])
}

// connect starts a process and makes the connection of an era.
func (d *childDialer) connect(ctx context.Context, era Era) (*Conn, error) {
	c, err := d.start(ctx)
	if err != nil {
		return nil, err
	}
	return c.handshake(ctx, era)
}

// ask finds the era of a server out. One that is known to be modern has all the
// time there is to say so again.
func (d *childDialer) ask(ctx context.Context, known Era) (*Conn, error) {
	c, err := d.start(ctx)
	if err != nil {
		return nil, err
	}
	c.asked = d.cfg.metaOf(mcp.LATEST_PROTOCOL_VERSION)
	q := &question{conn: c, patient: known == Modern}
	d.wire.question = q
	if err = c.initialize(ctx, Auto); err == nil {
		d.cfg.Eras.set(d.cfg.EraKey, c.era())
		return c, nil
	}
	d.cfg.Eras.set(d.cfg.EraKey, Auto) // whatever it was known to be
	select {
	case <-c.child.Done():
		q.lost = q.lost || q.refused // it has answered, and exited
	default:
	}
	err = c.failed(err)
	if !q.lost || ctx.Err() != nil {
		return nil, err
	}
	begun := time.Now()
	c, err = d.connect(ctx, Legacy)
	// A server that is as slow to begin again was not silent but starting, so it
	// is asked again another time.
	if err == nil && (q.silent == 0 || time.Since(begun) < q.silent) {
		d.cfg.Eras.set(d.cfg.EraKey, Legacy)
	}
	return c, err
}

// handshake is initialize for a child, which is ended when it fails.
func (c *Conn) handshake(ctx context.Context, era Era) (*Conn, error) {
	if err := c.initialize(ctx, era); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// initialize makes the handshake, or what modern connections have instead.
func (c *Conn) initialize(ctx context.Context, era Era) error {
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = c.cfg.ClientInfo
	if era == Legacy {
		req.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	}
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
		meta := c.asked
		if v := c.mcp.ProtocolVersion(); meta == nil || meta.fields[mcp.MetaKeyProtocolVersion] != v {
			meta = c.cfg.metaOf(v)
		}
		c.meta.Store(meta)
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

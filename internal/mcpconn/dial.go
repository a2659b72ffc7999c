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

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// dialer is one attempt to connect, which may take two processes: the question for
// its era kills some servers, and some fall silent on it for good. A server is started
// again once, and only
//
//   - when it exited, and had read the question, or may have; not when it exited for a
//     reason of its own before;
//   - when it was silent on both questions for half of the time that there was. It is
//     then ended by the end of its input and SIGTERM before anything else.
type dialer struct {
	cfg  *Config
	proc proc.Config
}

// Dial connects. Its ctx bounds the connecting, not the connection. Its errors
// are [*rpc.ConfigError] and [*rpc.StartError]; nothing is left then.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	d := &dialer{cfg: &cfg}
	if err := d.look(); err != nil {
		return nil, err
	}
	if cfg.Era != rpc.Auto {
		return d.connect(ctx, cfg.Era)
	}
	return d.findOut(ctx)
}

// look finds the program and the directory.
func (d *dialer) look() error {
	dir := d.cfg.Dir
	if dir != "" {
		bad := func(reason string) error { return &rpc.ConfigError{Field: "Dir", Reason: reason} }
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
		return &rpc.StartError{Phase: "start", Err: err}
	}
	d.proc = proc.Config{
		Path: path, Args: d.cfg.Args, Env: d.cfg.Env, Dir: dir,
		Grace: d.cfg.Grace, TermFirst: d.cfg.TermFirst, Prepare: d.cfg.Prepare,
	}
	return nil
}

// start starts a process; nothing is sent yet.
func (d *dialer) start() (*Conn, error) {
	c, err := newConn(d.cfg, stdio.Config{
		Proc:           d.proc,
		MaxMessageSize: d.cfg.MaxMessageSize,
		CloseTimeout:   d.cfg.CloseTimeout,
		Traffic:        d.cfg.Traffic,
		OnJunk:         d.cfg.OnJunk,
		OnStderr:       d.cfg.OnStderr,
		OnPanic:        d.cfg.OnPanic,
		OnLost:         d.cfg.OnLost,
	})
	if err != nil {
		return nil, &rpc.StartError{Phase: "start", Err: err}
	}
	told := false
	defer func() {
		if !told { // OnStart panics
			c.discard()
		}
	}()
	if d.cfg.OnStart != nil {
		d.cfg.OnStart(c)
	}
	told = true
	growStack()
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

// connect makes a connection of one era.
func (d *dialer) connect(ctx context.Context, era rpc.Era) (*Conn, error) {
	c, err := d.start()
	if err != nil {
		return nil, err
	}
	if err := newGreeting(c, era).run(ctx); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// findOut makes a connection to a server whose era isn't given.
func (d *dialer) findOut(ctx context.Context) (*Conn, error) {
	known := d.cfg.Eras.get(d.cfg.EraKey)
	c, err := d.start()
	if err != nil {
		return nil, err
	}
	order := []rpc.Era{rpc.Modern, rpc.Legacy}
	if known.isLegacy() {
		order = []rpc.Era{rpc.Legacy, rpc.Modern}
	}
	g := newGreeting(c, order...)
	g.hasty = !known.isLegacy() // one that the other question kills is not asked it
	g.gives = g.hasty && !known.slow
	if err = g.run(ctx); err == nil {
		if !known.isLegacy() || known.doubted.IsZero() || c.isModern() {
			d.cfg.Eras.set(d.cfg.EraKey, memory{era: c.era()})
		}
		return c, nil
	}
	var refused *rpc.Error
	if !known.isLegacy() || errors.As(err, &refused) {
		d.cfg.Eras.set(d.cfg.EraKey, memory{})
	}
	again := g.hasty && g.mayHaveKilled(err) || err == errSilent
	if err == errSilent {
		_ = c.Close() // by the end of its input first; how it ended is in the failure
	}
	failure := c.failed(err)
	if !again || ctx.Err() != nil {
		return nil, failure
	}
	return d.startAgain(ctx, g, known, failure)
}

// startAgain begins with the question of the old era. First is why the first process
// was no use.
func (d *dialer) startAgain(ctx context.Context, g *greeting, known memory, first error) (*Conn, error) {
	silent := g.silent
	begun := time.Now()
	c, err := d.connect(ctx, rpc.Legacy)
	learnt := memory{era: rpc.Legacy}
	switch {
	case silent > 0 && (err != nil || time.Since(begun) >= silent):
		learnt = memory{slow: true}
	case err != nil:
		learnt = memory{}
	case silent == 0 && !g.refused(rpc.Modern) && known.doubted.IsZero():
		learnt.doubted = time.Now().Add(mishapTime)
	}
	d.cfg.Eras.set(d.cfg.EraKey, learnt)
	if err != nil && ctx.Err() != nil {
		return nil, first // it says more than that there was no more time
	}
	return c, err
}

func (c *Conn) era() rpc.Era {
	if c.isModern() {
		return rpc.Modern
	}
	return rpc.Legacy
}

// failed ends c and says why it didn't connect.
func (c *Conn) failed(err error) error {
	start := &rpc.StartError{Phase: "connect", Err: err}
	if errors.Is(err, rpc.ErrLost) {
		start.Err = c.Err()
	}
	d := c.Death()
	start.Exit, start.Stderr, start.Stdout = d.Exit, d.Stderr, d.Stdout
	c.discard()
	return start
}

// discard ends a child that never served: there is no state to save.
func (c *Conn) discard() {
	c.child.Kill()
	_ = c.Close()
}

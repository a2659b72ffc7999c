// Package mcpconn connects to an MCP server that runs as a child process: a client of
// the protocol over internal/stdio.
//
//   - The era of the protocol is found out without a server paying for it with its
//     life, and remembered, see greeting.go.
//   - tools/call is encoded once and its result decoded once, see call.go.
//   - What servers send is decoded by internal/decode, subscriptions are those of
//     internal/streams, and what servers ask is answered by internal/rounds.
//
// It knows nothing of pools, and blanks no secrets: its errors hold what the server
// and the system said.
package mcpconn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/container"
	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/progress"
	"github.com/mcppool/mcppool/internal/rounds"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
	"github.com/mcppool/mcppool/internal/streams"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// Config says what to start and what is called with what it says. Its own funcs may
// be nil; they run on goroutines of the connection, which Close waits for.
type Config struct {
	Command string   // looked up on the PATH of Env
	Args    []string // without the program's own name
	Env     []string // the whole environment of the child
	Dir     string   // its working directory; empty is the host's

	rpc.Config
	Eras   *Eras    // memory of the eras of commands, under EraKey; nil for none
	EraKey [16]byte // stands for Command and Args

	MaxMessageSize int                   // in bytes; zero or less: 64 MiB
	CloseTimeout   time.Duration         // zero: 10 s
	Grace          time.Duration         // see proc.Config; zero: half of CloseTimeout
	TermFirst      func() bool           // see proc.Config
	Prepare        func(*exec.Cmd) error // see proc.Config; called before each start
	Traffic        *Traffic              // counts the bytes; nil for none

	// Contain is called with the command of each start, after Prepare, and returns
	// the container that it runs, or nil.
	Contain func(*exec.Cmd) *container.Container

	OnStart  func(*Conn)                  // a child was started, for a connection to be; some servers are twice, see dial.go
	OnJunk   func(line []byte, total int) // see stdio.Config
	OnStderr func(line []byte)            // see stdio.Config
	OnLost   func()                       // see stdio.Config
}

// Traffic counts the bytes that go to children and come from them.
type Traffic = stdio.Traffic

// StderrTail is how many bytes of stderr, and of stdout, Death has at most.
const StderrTail = stdio.DefaultStderrTail

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	cfg      *Config
	child    *stdio.Conn
	box      *container.Container // nil for none
	info     *mcp.InitializeResult
	meta     atomic.Pointer[rpc.RequestMeta] // nil in it on legacy connections
	decoder  toolresult.Decoder
	progress progress.Handlers
	streams  *streams.Set

	closing  sync.Once
	closeErr error // written within closing
}

var _ rpc.Conn = (*Conn)(nil)

// newConn starts a process. Nothing is sent yet.
func newConn(cfg *Config, sc stdio.Config) (*Conn, error) {
	c := &Conn{cfg: cfg}
	c.decoder.Unknown = cfg.UnknownContent
	sc.OnRequest = func(ctx context.Context, method string, params json.RawMessage) (any, error) {
		return rounds.Serve(ctx, &cfg.Handlers, method, params)
	}
	// Notifications may come before the streams are made, but none that is theirs.
	ready := make(chan struct{})
	sc.OnNotification = func(method string, params json.RawMessage) {
		<-ready
		c.notified(method, params)
	}
	defer close(ready)
	sc.Proc.Prepare = c.prepare
	child, err := stdio.Start(sc)
	if err != nil {
		return nil, err
	}
	c.child = child
	c.streams = streams.New(child.Ending(), c.listen)
	return c, nil
}

// prepare is called before the start.
func (c *Conn) prepare(cmd *exec.Cmd) error {
	if c.cfg.Prepare != nil {
		if err := c.cfg.Prepare(cmd); err != nil {
			return err
		}
	}
	if c.cfg.Contain != nil {
		c.box = c.cfg.Contain(cmd)
	}
	return nil
}

// isModern reports the era, once the handshake is through.
func (c *Conn) isModern() bool { return c.meta.Load() != nil }

// Info is what the server said of itself. It must not be changed.
func (c *Conn) Info() *mcp.InitializeResult { return c.info }

// Pid is the process id of the child.
func (c *Conn) Pid() int { return c.child.Pid() }

// RSS is the resident memory of the child's process tree, in bytes. ok is false
// where it can't be known: on other systems than Linux, after the end.
func (c *Conn) RSS() (bytes int64, ok bool) { return c.child.RSS() }

// RSSOf returns that of several children, by their index, 0 where it isn't known. It
// takes no longer than for one.
func RSSOf(conns []*Conn) []int64 {
	children := make([]*stdio.Conn, len(conns))
	for i, c := range conns {
		children[i] = c.child
	}
	return stdio.RSSOf(children)
}

// Request makes one request, whose params are an object or nil.
func (c *Conn) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return c.child.Request(ctx, method, c.meta.Load().In(params))
}

// ListTools is tools/list, one page of it.
func (c *Conn) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*rpc.ToolList, error) {
	params, err := offers.Params(req.Params)
	if err != nil {
		return nil, err
	}
	raw, err := c.Request(ctx, string(mcp.MethodToolsList), params)
	if err != nil {
		return nil, err
	}
	return decode.Tools(raw)
}

// Probe reports whether the server is alive: nil, or why it isn't known to be.
// It is asked what every living server of its era answers, ping or
// server/discover, and an error is an answer.
func (c *Conn) Probe(ctx context.Context) error {
	method := string(mcp.MethodPing)
	if c.isModern() {
		method = string(mcp.MethodServerDiscover)
	}
	_, err := c.Request(ctx, method, nil)
	var (
		refused *rpc.Error
		unclear *rpc.AnswerError
	)
	if errors.As(err, &refused) || errors.As(err, &unclear) {
		return nil
	}
	return err
}

// SetLevel sets the least severity of the log messages that the server sends. On
// a legacy connection it is logging/setLevel; on a modern one every request after
// it carries the level, and nothing is sent now.
func (c *Conn) SetLevel(ctx context.Context, req mcp.SetLevelRequest) error {
	for m := c.meta.Load(); m != nil; m = c.meta.Load() {
		if c.meta.CompareAndSwap(m, m.WithLevel(req.Params.Level)) {
			return nil
		}
	}
	return c.tell(ctx, "logging/setLevel", req.Params)
}

// Subscribe asks to be told, as notifications/resources/updated, when a resource
// changes. On a legacy connection it is resources/subscribe; on a modern one a
// stream of its own, and Subscribe returns once the server has acknowledged it.
// A second one for the same resource does nothing there.
func (c *Conn) Subscribe(ctx context.Context, req mcp.SubscribeRequest) error {
	if c.isModern() {
		return c.streams.Subscribe(ctx, req.Params.URI)
	}
	return c.tell(ctx, "resources/subscribe", req.Params)
}

// Unsubscribe ends what Subscribe began.
func (c *Conn) Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error {
	if c.isModern() {
		return c.streams.Unsubscribe(ctx, req.Params.URI)
	}
	return c.tell(ctx, "resources/unsubscribe", req.Params)
}

// tell makes a request whose result says nothing.
func (c *Conn) tell(ctx context.Context, method string, params any) error {
	raw, err := offers.Params(params)
	if err == nil {
		_, err = c.Request(ctx, method, raw)
	}
	return err
}

// Done is closed once the connection is lost for good, and by Close.
func (c *Conn) Done() <-chan struct{} { return c.child.Done() }

// Err says why, after Done.
func (c *Conn) Err() error {
	err := c.child.Err()
	var dead *stdio.DeadError
	if errors.As(err, &dead) {
		return dead.Reason
	}
	return err
}

// Death is how the process ended, if it is known to have, and its last words.
func (c *Conn) Death() rpc.Death {
	var dead *stdio.DeadError
	if !errors.As(c.child.Err(), &dead) {
		return rpc.Death{Stderr: c.child.StderrTail(), Stdout: c.child.StdoutTail()}
	}
	d := rpc.Death{Stderr: dead.StderrTail, Stdout: dead.StdoutTail}
	if dead.Exited {
		d.Exit = dead.Exit.String()
	}
	return d
}

// Exit is how the process ended, whoever ended it; empty while it runs.
func (c *Conn) Exit() string {
	if exit, ended := c.child.Exit(); ended {
		return exit.String()
	}
	return ""
}

// Close ends the connection and returns once nothing of it is left running.
func (c *Conn) Close() error {
	return c.CloseBy(time.Now().Add(cmp.Or(c.cfg.CloseTimeout, stdio.DefaultCloseTimeout)))
}

// CloseBy is Close with another end of the time for it. All callers get what the first
// one got.
func (c *Conn) CloseBy(deadline time.Time) error {
	c.closing.Do(func() { c.closeErr = c.closeChild(deadline) })
	return c.closeErr
}

// closeChild ends the process, and the container that it runs.
func (c *Conn) closeChild(deadline time.Time) error {
	defer c.streams.Wait()
	if c.box == nil {
		return c.child.CloseBy(deadline)
	}
	grace := cmp.Or(c.cfg.Grace, time.Until(deadline)/2)
	if c.cfg.TermFirst != nil && c.cfg.TermFirst() {
		grace = 0
	}
	err, left := c.box.Close(deadline, grace, c.child.CloseBy)
	if left != nil {
		return &proc.LeftError{Err: left}
	}
	return err
}

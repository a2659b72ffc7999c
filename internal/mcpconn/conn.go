// Package mcpconn connects to one MCP server, which runs as a child process or
// is reached over HTTP. It is mcp-go's client with what that lacks:
//
//   - The transport of a child process is internal/stdio, and tools/call goes
//     straight to it: encoded once, and its result decoded once.
//   - JSON-RPC errors arrive whole, and results with blocks of unknown types do.
//   - The era of the protocol is found out without a server paying for it with
//     its life, and remembered.
//   - Subscriptions are the same in both eras.
//   - A probe says whether the server is alive in either era.
//
// It knows nothing of pools, and blanks no secrets: its errors hold what the
// server and the system said.
package mcpconn

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/stdio"
)

// Config says what to connect to and who hears of what it says. Either Command
// or URL is set. The funcs may be nil; they run on goroutines of the connection,
// which Close waits for.
type Config struct {
	Command string   // looked up on the PATH of Env
	Args    []string // without the program's own name
	Env     []string // the whole environment of the child
	Dir     string   // its working directory; empty is the host's

	URL    string // streamable HTTP, or SSE where the path ends in "/sse"
	Header map[string]string
	Web    *Web // required with URL

	Era    Era
	Eras   *Eras    // memory of the eras of commands, under EraKey; nil for none
	EraKey [16]byte // stands for Command and Args

	ClientInfo     mcp.Implementation
	MaxMessageSize int           // of a child, in bytes; zero or less: 64 MiB
	CloseTimeout   time.Duration // of a child; zero: 10 s
	Traffic        *Traffic      // counts the bytes of children; nil for none
	// Hurry is when whoever asked for the connection loses patience, if that is
	// before the end of the ctx of Dial: a server of unknown era is then asked
	// for less time. Zero for none.
	Hurry time.Time

	Handlers Handlers
	// UnknownContent makes a block of a type that mcp-go doesn't know.
	UnknownContent func(typ string, raw json.RawMessage) mcp.Content
	OnStart        func(pid int)                // a child was started; some are twice, see question
	OnJunk         func(line []byte, total int) // see stdio.Config
	OnStderr       func(line []byte)            // see stdio.Config
	OnPanic        func(v any, stack []byte)    // see stdio.Config; required with Command
	OnLost         func()                       // see stdio.Config; never called over HTTP
}

// Traffic counts the bytes that go to children and come from them.
type Traffic = stdio.Traffic

// StderrTail is how many bytes of stderr Death tells at most.
const StderrTail = stdio.DefaultStderrTail

// Handlers answer what the server asks. A nil one isn't offered to it.
type Handlers struct {
	Sampling    func(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error)
	Elicitation func(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	Roots       func(ctx context.Context) ([]mcp.Root, error)
	// Notification gets all notifications but progress, one at a time and in order.
	Notification func(n mcp.JSONRPCNotification)
}

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	cfg    *Config
	mcp    *client.Client
	sender transport.Interface // below mcp
	child  *stdio.Conn         // nil over HTTP
	info   *mcp.InitializeResult
	// meta is the _meta of the requests that don't go through mcp-go; nil in it
	// on legacy connections.
	meta     atomic.Pointer[requestMeta]
	asked    *requestMeta // meta of the newest revision, made while the server starts; nil for none
	progress progressHandlers
	streams  streams

	life context.Context // of the streams

	// Over HTTP, where a connection can't be lost: done is closed by Close, and
	// end ends life.
	done      chan struct{}
	end       context.CancelFunc
	closeOnce sync.Once
	closeErr  error // written before done is closed
}

// Dial connects. Its ctx bounds the connecting, not the connection. Its errors
// are [*ConfigError] and [*StartError]; nothing is left then.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	if cfg.URL != "" {
		return dialHTTP(ctx, &cfg)
	}
	return dialChild(ctx, &cfg)
}

// isModern reports the era, once the handshake is through.
func (c *Conn) isModern() bool { return c.meta.Load() != nil }

func (c *Conn) era() Era {
	if c.isModern() {
		return Modern
	}
	return Legacy
}

// Info is what the server said of itself. It must not be changed.
func (c *Conn) Info() *mcp.InitializeResult { return c.info }

// Pid is the process id of a child, 0 over HTTP.
func (c *Conn) Pid() int {
	if c.child == nil {
		return 0
	}
	return c.child.Pid()
}

// RSS is the resident memory of a child's process tree, in bytes. ok is false
// where it can't be known: over HTTP, on other systems than Linux, after the end.
func (c *Conn) RSS() (bytes int64, ok bool) {
	if c.child == nil {
		return 0, false
	}
	return c.child.RSS()
}

// Probe reports whether the server is alive: nil, or why it isn't known to be.
// It is asked what every living server of its era answers, ping or
// server/discover, and an error is an answer.
func (c *Conn) Probe(ctx context.Context) error {
	req := transport.JSONRPCRequest{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(probeID), Method: string(mcp.MethodPing)}
	if m := c.meta.Load(); m != nil {
		req.Method = string(mcp.MethodServerDiscover)
		req.Params = map[string]any{"_meta": m.fields}
		c.addHeader(&req)
	}
	_, err := c.sender.SendRequest(ctx, req)
	return plain(err)
}

// Ids of requests that don't go through mcp-go's client, which counts its own up
// from 1. Over stdio every request gets another id in the end.
const (
	probeID  = "probe"
	streamID = "listen-"
	inputID  = "input"
)

// Done is closed once the connection is lost for good, and by Close.
func (c *Conn) Done() <-chan struct{} {
	if c.child != nil {
		return c.child.Done()
	}
	return c.done
}

// Err says why, after Done.
func (c *Conn) Err() error {
	if c.child == nil {
		return nil
	}
	err := c.child.Err()
	var dead *stdio.DeadError
	if errors.As(err, &dead) {
		return dead.Reason
	}
	return err
}

// Death says how the process of a child ended, such as "exit status 3", empty if
// it isn't known to have; and what it wrote to stderr last.
func (c *Conn) Death() (exit, stderr string) {
	if c.child == nil {
		return "", ""
	}
	var dead *stdio.DeadError
	if !errors.As(c.child.Err(), &dead) {
		return "", c.child.StderrTail()
	}
	if dead.Exited {
		exit = dead.Exit.String()
	}
	return exit, dead.StderrTail
}

// Close ends the connection and returns once nothing of it is left running.
func (c *Conn) Close() error {
	if c.child != nil {
		err := c.child.Close()
		c.streams.wait()
		return err
	}
	c.closeOnce.Do(func() {
		c.closeErr = c.mcp.Close()
		c.end()
		c.streams.wait()
		close(c.done)
	})
	<-c.done
	return plain(c.closeErr)
}

// notified gets the notifications of a child, in order.
func (c *Conn) notified(method string, params json.RawMessage) {
	if method == string(mcp.MethodNotificationProgress) {
		c.progress.deliver(params)
		return
	}
	if method == mcp.MethodNotificationSubscriptionsAcknowledged {
		c.streams.acknowledged(params)
	}
	if c.cfg.Handlers.Notification == nil {
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	if len(params) > 0 && json.Unmarshal(params, &n.Params) != nil {
		n.Params = mcp.NotificationParams{} // params that aren't an object
	}
	c.cfg.Handlers.Notification(n)
}

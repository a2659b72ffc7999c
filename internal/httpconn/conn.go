// Package httpconn connects to an MCP server at a URL: mcp-go's client over its
// streamable HTTP or SSE transport, with what that lacks:
//
//   - JSON-RPC errors arrive whole, and results undecoded, which internal/decode and
//     internal/toolresult read.
//   - Subscriptions, the log level and a probe are the same in both eras.
//   - A call that is asked for input goes on as on a connection to a child.
package httpconn

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/guests"
	"github.com/mcppool/mcppool/internal/progress"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/streams"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// Config says what to connect to.
type Config struct {
	URL    string // streamable HTTP, or SSE where the path ends in "/sse"
	Header map[string]string
	Web    *Web

	MaxMessageSize int // in bytes, of one message of the server; zero or less: 64 MiB

	rpc.Config
}

// probeTime bounds how long a server that is asked for its era may be silent; it is
// half of what is left when that is less.
const probeTime = 1500 * time.Millisecond

// handlerTime bounds how long Close waits for handlers.
const handlerTime = 10 * time.Second

var (
	errClosed         = errors.New("connection closed")
	errNotModern      = errors.New("server speaks no modern revision of the protocol")
	errHandlerRunning = errors.New("a handler has not returned")
)

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	cfg     *Config
	mcp     *client.Client
	sender  transport.Interface // below mcp
	limit   int                 // of one message of the server
	info    *mcp.InitializeResult
	meta    atomic.Pointer[rpc.RequestMeta] // nil in it on legacy connections
	decoder toolresult.Decoder
	streams *streams.Set
	guests  guests.Group
	ids     atomic.Int64 // of requests that are ours

	progress progress.Handlers

	life context.Context // of the streams and the handlers
	end  context.CancelFunc

	done      chan struct{} // closed by Close: nothing else is known to end it
	closeOnce sync.Once
	closeErr  error // written before done is closed
}

var _ rpc.Conn = (*Conn)(nil)

// Dial connects. Its ctx bounds the connecting, not the connection. Its error is
// a [*rpc.StartError]; nothing is left then.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	c, err := find(ctx, &cfg)
	if err != nil {
		return nil, &rpc.StartError{Phase: "connect", Err: err}
	}
	return c, nil
}

// find connects to a server whose era may not be given.
func find(ctx context.Context, cfg *Config) (*Conn, error) {
	if cfg.Era != rpc.Auto {
		return dial(ctx, cfg)
	}
	if cfg.Web.isLegacy(cfg.URL) {
		known := *cfg
		known.Era = rpc.Legacy
		c, err := dial(ctx, &known)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		cfg.Web.learn(cfg.URL, false)
	}
	c, err := dial(ctx, cfg)
	if err == nil {
		cfg.Web.learn(cfg.URL, c.meta.Load() == nil)
	}
	return c, err
}

func dial(ctx context.Context, cfg *Config) (*Conn, error) {
	c := &Conn{cfg: cfg, limit: cfg.MaxMessageSize, done: make(chan struct{})}
	if c.limit <= 0 {
		c.limit = defaultMessage
	}
	c.decoder.Unknown = cfg.UnknownContent
	c.guests.OnPanic = cfg.OnPanic
	var err error
	if c.sender, err = newTransport(cfg, c.limit); err != nil {
		return nil, err
	}
	// The stream of SSE lives as long as this ctx, which is the connection's own.
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.streams = streams.New(c.life, c.listen)
	c.mcp = client.NewClient(wrap(c.sender), c.options(ctx)...)
	stop := context.AfterFunc(ctx, c.end)
	var x exchange
	err = x.explain(c.life, c.limit, c.mcp.Start(x.in(c.life)))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		c.mcp.OnNotification(c.notified)
		err = c.initialize(ctx)
	}
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

func (c *Conn) initialize(ctx context.Context) error {
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = c.cfg.ClientInfo
	if c.cfg.Era == rpc.Legacy {
		req.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	}
	info, err := typed(ctx, c.limit, func(ctx context.Context) (*mcp.InitializeResult, error) {
		return c.mcp.Initialize(ctx, req)
	})
	if err != nil {
		return err
	}
	version := c.mcp.ProtocolVersion()
	c.info = info
	if mcp.IsModernProtocol(version) {
		c.meta.Store(rpc.NewRequestMeta(version, c.cfg.ClientInfo, &c.cfg.Handlers))
	} else if c.cfg.Era == rpc.Modern {
		return errNotModern
	}
	return nil
}

// notified is called with the notifications of the server.
func (c *Conn) notified(n mcp.JSONRPCNotification) {
	switch n.Method {
	case string(mcp.MethodNotificationProgress):
		params, _ := json.Marshal(n.Params) // it came as JSON
		c.progress.Deliver(params)
		return
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		params, _ := json.Marshal(n.Params)
		c.streams.Acknowledged(params)
	}
	if h := c.cfg.Handlers.Notification; h != nil {
		h(n)
	}
}

// Info is what the server said of itself. It must not be changed.
func (c *Conn) Info() *mcp.InitializeResult { return c.info }

// Pid is 0: the server is nobody's child here.
func (c *Conn) Pid() int { return 0 }

// RSS isn't known.
func (c *Conn) RSS() (bytes int64, ok bool) { return 0, false }

// Death isn't known.
func (c *Conn) Death() rpc.Death { return rpc.Death{} }

// Done is closed by Close: over HTTP a connection can't be lost.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: it was closed. It is nil before.
func (c *Conn) Err() error {
	if c.life.Err() == nil {
		return nil
	}
	return errClosed
}

// Close ends the connection and returns once nothing of it is left running, but for
// a handler that doesn't return.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		c.closeErr = plain(c.mcp.Close())
		c.end()
		c.streams.Wait()
		select {
		case <-c.guests.Close():
		case <-time.After(handlerTime):
			c.closeErr = errHandlerRunning
		}
		close(c.done)
	})
	<-c.done
	return c.closeErr
}

// IsLost reports whether an error is mcp-go's of a broken transport, or says that a
// connection of this project is lost, rather than one of a server that is alive.
func IsLost(err error) bool {
	var e *transport.Error
	return errors.As(err, &e) || errors.Is(err, transport.ErrTransportClosed) || errors.Is(err, rpc.ErrLost)
}

// plain takes the URL out of an error, which net/http puts there.
func plain(err error) error {
	var web *url.Error
	if errors.As(err, &web) {
		return web.Err
	}
	return err
}

// silence is how long a server may be silent on server/discover.
func (cfg *Config) silence(ctx context.Context) time.Duration {
	d := probeTime
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	if left := time.Until(cfg.Hurry); left > 0 { // else whoever was in a hurry has left
		d = min(d, left/2)
	}
	return d
}

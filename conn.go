package mcppool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/current"
	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/poolstate"
	"github.com/mcppool/mcppool/internal/redact"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/scratch"
)

// conn is what the pool has of one session besides its state: the connection, and
// what is known of it. Its life, and who borrows it, is decided in
// internal/poolstate.
type conn struct {
	pool   *Pool
	st     *poolstate.Session
	id     string // never used twice
	srv    Server // the pool's own copy
	label  string // server.label
	server *serverRecord

	// began is the ctx of the connect: it has the values of the ctx of the caller
	// that began it, but not its end, since others may wait for the same connect.
	// Nil once the connect has ended. Protected by pool.mu, as cancel is.
	began  context.Context
	cancel context.CancelFunc // of began
	hurry  time.Time          // that caller's deadline; zero for none

	// ready is closed once the connect has ended. Before that happens, either
	// client is set, or connectErr is. The goroutine of the connect alone touches
	// the next two until then.
	ready      chan struct{}
	client     Client
	lost       <-chan struct{} // client.Done()
	connectErr error

	dir atomic.Pointer[scratch.Dir] // its own; nil for none

	// nobodysRoots is set when the server was last told its roots while it was
	// nobody's.
	nobodysRoots atomic.Bool

	starting atomic.Pointer[mcpconn.Conn] // the last process of its connect; nil before, and over HTTP

	served   atomic.Bool // it has been called, but for AfterConnect
	opened   bool        // the connect has succeeded; set before ready is closed
	saveErr  error       // of BeforeClose; the goroutine of the close alone touches this and the next
	closeErr error

	// doubt is set while the server is asked whether it answers.
	doubt     atomic.Pointer[doubt]
	current   current.Requests
	handlers  atomic.Pointer[Handlers] // of the call under way; nil when it has none
	lastErr   atomic.Pointer[error]    // of a call
	info      *mcp.InitializeResult    // what the server said of itself; set before ready is closed
	showInfo  sync.Once
	shownInfo *mcp.InitializeResult // info without secrets; set by infoToShow
}

// serverRecord is what the pool has of one configuration while any session of it is
// open.
type serverRecord struct {
	srv     Server // as the last call said that began a session
	label   string
	command digest // of command and args alone, for CloseCommand
	redact  *redact.Redactor

	identity *keyed.Kept // which is known as long as this is
}

func connOf(s *poolstate.Session) *conn         { return s.Owner.(*conn) }
func recordOf(g *poolstate.Group) *serverRecord { return g.Owner.(*serverRecord) }

// ownLocked makes the conn of a session that was begun for a caller. The caller must
// hold p.mu.
func (p *Pool) ownLocked(s *poolstate.Session, srv *Server, ctx context.Context) {
	rec, known := s.Group.Owner.(*serverRecord)
	own := srv.clone()
	if !known {
		is := identityOf(&own)
		rec = &serverRecord{
			label:    p.labelLocked(&own, s.Key.Server),
			command:  is.CommandDigest(),
			identity: p.known.Keep(is, s.Key.Server),
			redact: redact.New(redact.Source{
				// A command that is a whole line by mistake has arguments too.
				Args: append(strings.Fields(own.Command), own.Args...), Env: own.Env, URL: own.URL, Header: own.Header,
			}),
		}
		s.Group.Owner, s.Group.Label = rec, rec.label
	}
	rec.srv = own
	c := &conn{
		pool:   p,
		st:     s,
		id:     sessionID(p.id, s.ID),
		srv:    own,
		label:  rec.label,
		server: rec,
		ready:  make(chan struct{}),
	}
	c.hurry, _ = ctx.Deadline()
	c.began, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.Owner = c
	p.watchLocked()
}

// abort ends the connect early.
func (c *conn) abort() {
	c.pool.mu.Lock()
	cancel := c.cancel
	c.pool.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// policy is how c is kept, as the call said that it serves.
func (c *conn) policy() poolstate.Policy {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.st.Policy()
}

// connectTimeout bounds the connect of c, unless it is negative.
func (p *Pool) connectTimeout(c *conn) time.Duration {
	return cmp.Or(c.srv.Policy.ConnectTimeout, p.opts.ConnectTimeout)
}

// errGoexit is what came of a func of the caller's that ended its goroutine, as a test's
// FailNow does.
var errGoexit = errors.New("its goroutine was ended (runtime.Goexit)")

// connect brings c up, or ends it. It is the goroutine of a session that is
// connecting: whatever Dial brings up is published here or closed here.
func (p *Pool) connect(c *conn) {
	defer p.wg.Done()
	p.mu.Lock()
	from, spare, begun := c.originLocked(), c.st.Spare(), p.now()
	ctx, cancel := c.began, c.cancel
	p.mu.Unlock()
	var wanted bool
	defer func() {
		if cancel(); !wanted || !c.opened {
			p.closeConn(c)
		}
	}()
	if d := p.connectTimeout(c); d > 0 {
		bounded, stop := context.WithTimeout(ctx, d)
		defer stop()
		ctx = bounded
	}
	err := errGoexit // unless dial returns
	defer func() {
		if err == errGoexit {
			err = p.startError(ctx, c, err)
		}
		p.connected(ctx, c, &wanted, ConnectEndInfo{Spare: spare, Took: p.now() - begun, Err: err})
	}()
	if p.trace.ConnectBegin != nil {
		p.trace.ConnectBegin(ctx, ConnectBeginInfo{from, spare})
	}
	err = p.dial(ctx, c)
}

// publish makes the outcome of a connect known, says whose it is, and reports whether
// anybody wants it still. When a close ties with the end of the connect, the close wins.
func (p *Pool) publish(c *conn, end *ConnectEndInfo) (wanted, oneShot bool) {
	p.mu.Lock()
	defer p.unlock()
	c.began, c.cancel = nil, nil // their values were for this alone
	now, err := p.now(), end.Err
	end.Origin, oneShot = c.originLocked(), c.st.OneShot()
	switch {
	case err == nil:
		wanted = p.state.Connected(c.st, c.lost, now)
	case errors.As(err, new(*ConfigError)):
		wanted = p.state.Refused(c.st, now)
	default:
		wanted = p.state.Failed(c.st, err, now)
	}
	switch {
	case wanted:
		c.connectErr = err
	case c.st.Cause() != nil:
		c.connectErr = c.st.Cause()
	case p.closed: // who waited for it has moved on, but for a Prewarm
		c.connectErr = ErrClosed
	default:
		c.connectErr = ErrServerClosed
	}
	return wanted, oneShot
}

// connected publishes and reports the end of a connect, and says whether it is wanted.
func (p *Pool) connected(ctx context.Context, c *conn, wanted *bool, end ConnectEndInfo) {
	c.opened = end.Err == nil
	var oneShot bool
	*wanted, oneShot = p.publish(c, &end)
	defer close(c.ready) // whatever a hook does
	end.Info = c.infoToShow()
	if !*wanted {
		end.Err = context.Canceled
	}
	if c.opened && p.trace.SessionOpened != nil {
		p.trace.SessionOpened(ctx, SessionOpenedInfo{end.Origin, end.Spare, oneShot, end.Took})
	}
	if p.trace.ConnectEnd != nil {
		p.trace.ConnectEnd(ctx, end)
	}
}

// infoToShow is what the server said of itself, without secrets; nil when it said
// nothing. It is made once somebody looks, which must not be before the connect has
// ended.
func (c *conn) infoToShow() *mcp.InitializeResult {
	c.showInfo.Do(func() {
		if c.info != nil {
			c.shownInfo = redact.Value(c.server.redact, c.info)
		}
	})
	return c.shownInfo
}

// lost drops a session whose connection was lost by itself, rather than at the next
// call that finds it.
func (p *Pool) lost(c *conn) {
	p.mu.Lock()
	defer p.unlock()
	p.state.Lost(c.st, p.now())
}

// dial connects, sets what there is of the connection, and makes every failure one that
// says whose it is.
func (p *Pool) dial(ctx context.Context, c *conn) (err error) {
	err = c.safely("Options.Dial", func() error {
		srv, err := p.place(c)
		if err != nil {
			return err
		}
		if p.opts.Dial == nil {
			c.client, err = p.dialDefault(ctx, c, &srv)
			return err
		}
		c.client, err = p.opts.Dial(rpc.WithHandlers(ctx, p.handlersOf(c)), srv)
		return c.ownError(err)
	})
	switch {
	case err != nil:
	case c.client == nil:
		err = errors.New("Options.Dial returned no client")
	default:
		err = p.greet(ctx, c) // which leaves the close to closeConn
	}
	if err != nil {
		return p.startError(ctx, c, err)
	}
	return nil
}

// greet is what comes of a connect once there is a client.
func (p *Pool) greet(ctx context.Context, c *conn) error {
	err := c.safely("Client.Done", func() error {
		c.lost = c.client.Done()
		if r, ok := c.client.(Requester); ok {
			c.info = r.Info()
		}
		return nil
	})
	if err != nil || p.opts.AfterConnect == nil {
		return err
	}
	l := ownLease(c, c.origin().Scope)
	defer l.Release()
	err = c.safely("Options.AfterConnect", func() error { return p.opts.AfterConnect(ctx, l) })
	if err == nil {
		err = l.lending.handOver(ctx)
	}
	c.served.Store(false)
	return c.server.redact.Error(err)
}

func (p *Pool) startError(ctx context.Context, c *conn, err error) error {
	var (
		config *ConfigError
		start  *StartError
	)
	switch {
	case errors.As(err, &config):
		return config
	case !errors.As(err, &start):
		start = &StartError{Phase: "connect", Err: err}
	default:
		own := *start // which Dial may return again
		start = &own
	}
	start.Server = c.label
	if late := fmt.Errorf("no connection within %s", p.connectTimeout(c)); errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if errors.Is(start.Err, context.DeadlineExceeded) {
			start.Err = late
		} else {
			start.Err = fmt.Errorf("%w: %w", late, start.Err)
		}
	}
	return start
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

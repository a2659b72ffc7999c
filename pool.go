package mcppool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/breaker"
	"github.com/mcppool/mcppool/internal/fairqueue"
	"github.com/mcppool/mcppool/internal/httpconn"
	"github.com/mcppool/mcppool/internal/idle"
	"github.com/mcppool/mcppool/internal/mcpconn"
)

// Pool keeps sessions with MCP servers between calls. It is made by [New], is
// safe for concurrent use, and must be closed.
type Pool struct {
	opts  Options         // resolved by its accessors; never changes
	born  time.Time       // the beginning of its clock
	id    string          // prefix of its sessions' ids
	trace Trace           // its funcs are nil without one
	life  context.Context // ends when the pool takes no more calls
	end   context.CancelFunc
	done  <-chan struct{} // of life
	eras  eras
	// traffic counts the bytes of all processes.
	traffic mcpconn.Traffic
	web     httpconn.Web // connections to servers at a URL
	// empty is closed once the pool is closed and has no session left.
	empty chan struct{}
	// wg counts the goroutines of the pool: connects, closes and the reaper. It
	// is added to only under mu, and only while a session is open or the pool
	// is, so never once empty is closed.
	wg sync.WaitGroup

	mu            sync.Mutex // protects the fields below; held for map, list and count work only
	closed        bool
	lastID        uint64
	open          int                     // sessions that aren't closed
	sessions      map[key]*session        // the linked ones
	servers       map[digest]*serverGroup // all that are open, by server
	scopes        map[string]*scopeGroup  // those of them that have a scope
	kept          int                     // linked sessions
	idle          idle.Lists[*session]    // of them, those that nobody borrows
	spares        idle.Lists[*session]    // the connected ones
	breakers      breaker.Set[digest]     // of servers that failed lately
	breakerEvents []breakerEvent          // changes of those that have yet to be told of
	reaper        reaper
	watching      bool // the goroutines of watch.go are there

	limits   Limits
	starting int // connects under way
	tally    tally
	queue    fairqueue.Queue[*session] // those that wait for a place
	waiting  int                       // callers that wait for those
	pace     fairqueue.Pace            // at which they get one

	states   [stateClosed]int // open sessions by state
	connects uint64           // sessions begun
	failures uint64           // of them, those that didn't come up
	opened   uint64           // of them, those that did
	evicted  uint64
	outcomes [outcomeCount]uint64   // tool calls ended
	closes   map[CloseReason]uint64 // sessions closed
}

// New makes a pool; nil options are the defaults. It starts nothing. It fails
// with a [*ConfigError] when an option has no meaning.
func New(opts *Options) (*Pool, error) {
	p := &Pool{
		born:     time.Now().Add(-1), // so that no moment of its life is zero
		opts:     opts.clone(),
		empty:    make(chan struct{}),
		sessions: make(map[key]*session),
		servers:  make(map[digest]*serverGroup),
		scopes:   make(map[string]*scopeGroup),
		closes:   make(map[CloseReason]uint64),
		reaper:   reaper{wake: make(chan struct{}, 1)},
	}
	if err := p.opts.validate(); err != nil {
		return nil, err
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.done = p.life.Done()
	p.limits = p.opts.Limits
	p.breakers.Config = p.opts.Backoff.config()
	if p.opts.Trace != nil {
		p.trace = *p.opts.Trace
	}
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	p.id = hex.EncodeToString(id[:])
	return p, nil
}

// sessionID is unique over pools and processes, so that it names a session in a
// log for good.
func sessionID(pool string, n uint64) string { return pool + "-" + strconv.FormatUint(n, 10) }

func shortHex(d digest) string { return hex.EncodeToString(d[:6]) }

// CallTool calls a tool of srv in the session of call.Scope, which it connects
// first when there is none. One deadline, that of ctx, spans waiting for the
// connect, waiting for the session's turn, and the call. Calls of one scope of
// one server go out one at a time, in order of arrival.
//
// The result is the server's, whatever it contains: a tool that failed is a
// result with IsError. Errors are those of the package's list; see
// [SafeToRetry] for which say that nothing was sent. No call is sent twice.
func (p *Pool) CallTool(ctx context.Context, srv Server, call Call) (*mcp.CallToolResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap(toolOp(call.Tool), &srv, phaseStart, err)
	}
	req, err := call.request()
	if err != nil {
		return nil, err
	}
	s, err := p.borrow(ctx, &srv, call.Scope, call.Check)
	for again := true; err == nil; again = false {
		var res *mcp.CallToolResult
		var sent bool
		res, sent, err = p.callIn(ctx, s, &req, &call, again)
		if sent {
			return res, err
		}
		s, err = p.borrowAgain(ctx, s, &srv, call.Check)
	}
	p.countRefused()
	return nil, wrap(toolOp(call.Tool), &srv, phaseQueue, err)
}

// callIn makes a call in a borrowed session and gives it back, except when again
// is set and the session was lost before anything was sent: sent is false then,
// and the session still borrowed.
func (p *Pool) callIn(ctx context.Context, s *session, req *mcp.CallToolRequest, call *Call, again bool) (res *mcp.CallToolResult, sent bool, err error) {
	done := callEnd{why: ClosePanicked, how: outcomeOther} // unless the client returns
	sent = true
	defer func() {
		if sent {
			p.giveBack(s, done.why, done.how)
		}
	}()
	res, err, done = s.call(ctx, req, call)
	if err != nil && again && done.how == outcomeNotSent && s.isLost() && !s.isKilled() {
		sent = false
	}
	return res, sent, err
}

func toolOp(tool string) string { return "tool " + strconv.Quote(tool) }

// wrap says what failed, where and how far it had come. Bad input speaks for
// itself.
func wrap(op string, srv *Server, ph phase, err error) error {
	var config *ConfigError
	if errors.As(err, &config) {
		return err
	}
	return &opError{op: op, server: srv.String(), phase: ph, err: err}
}

// lostError says what is known of the end of the connection.
func (s *session) lostError(err error) error {
	lost := &LostError{Server: s.label, Err: err}
	if s.isLost() && s.client.Err() != nil {
		lost.Err = s.client.Err()
	}
	if d, ok := s.client.(deathReporter); ok {
		lost.Exit, lost.Stderr = d.death()
	}
	return lost
}

// listTools follows the pages of tools/list.
func (s *session) listTools(ctx context.Context) ([]mcp.Tool, error) {
	var (
		tools []mcp.Tool
		req   mcp.ListToolsRequest
		seen  = map[mcp.Cursor]bool{"": true}
	)
	for {
		page, err := s.client.ListTools(ctx, req)
		if err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		if page.NextCursor == "" {
			return tools, nil
		}
		if seen[page.NextCursor] {
			return nil, fmt.Errorf("tools/list gave the same cursor again after %d tools", len(tools))
		}
		seen[page.NextCursor] = true
		req.Params.Cursor = page.NextCursor
	}
}

func (p *Pool) maxWait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limits.MaxWait
}

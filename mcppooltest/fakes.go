package mcppooltest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// Fakes are servers that live in memory, and what was seen of them. The zero value's
// servers connect at once and have no tools. Its funcs may be called for many sessions
// at once, and must return when their ctx ends; use [Sleep] to wait. Its fields aren't
// changed once it is in use. Its methods are safe for concurrent use.
type Fakes struct {
	// Tools are the tools of every server, by name.
	Tools Tools
	// Other answers calls of tools that a server doesn't have; default: the JSON-RPC
	// error -32602, as real servers do.
	Other Tool
	// Connect is called with each new connection before anybody else has it. It may
	// wait, fail, lose the connection, and set [Conn.Tools], for servers that differ or
	// have a state. Default: none.
	Connect func(ctx context.Context, c *Conn) error
	// List answers a listing of tools; default: the names in Conn.Tools, sorted, on one
	// page.
	List func(ctx context.Context, c *Conn, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error)
	// Request answers what is neither a listing nor a call of tools, such as
	// "resources/read", with a JSON value; default: sessions refuse such requests,
	// as they do for a custom client that isn't a [mcppool.Requester].
	Request func(ctx context.Context, c *Conn, method string, params json.RawMessage) (any, error)
	// Close is called when the pool closes a connection, which ends when it returns. It
	// is how a server takes its time to end. Default: none.
	Close func(c *Conn)

	mu    sync.Mutex // protects the fields below
	dials int
	conns []*Conn
	calls []*Call
	log   []string
}

// Tools are tools by name.
type Tools map[string]Tool

// listed is what a listing says of them.
func (t Tools) listed() *mcp.ListToolsResult {
	list := &mcp.ListToolsResult{Tools: []mcp.Tool{}}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		list.Tools = append(list.Tools, mcp.NewTool(name))
	}
	return list
}

// New makes a pool whose servers are fakes, whatever their commands and URLs say. Nil
// fakes are the zero value, nil opts the defaults of [mcppool.New]; opts.Dial, if it is
// set, is used in place of [Fakes.Dial], which it may call.
//
// At the end of the test the pool is closed, and the test fails if something of it is
// left: a session, a connection that wasn't closed exactly once, or a call. It works in
// a bubble of [testing/synctest], with the bubble's t; nothing here needs real time.
func New(t testing.TB, fakes *Fakes, opts *mcppool.Options) *mcppool.Pool {
	t.Helper()
	if fakes == nil {
		fakes = new(Fakes)
	}
	var o mcppool.Options
	if opts != nil {
		o = *opts
	}
	if o.Dial == nil {
		o.Dial = fakes.Dial
	}
	pool, err := mcppool.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := pool.Close(); err != nil {
			t.Errorf("mcppooltest: close of the pool: %v", err)
		}
		if n := pool.Stats().Open; n != 0 {
			t.Errorf("mcppooltest: %d sessions are left after the close of the pool", n)
		}
		fakes.check(t)
	})
	return pool
}

// callTime is how long calls of a closed pool may take to return.
const callTime = time.Second

// check fails t if a connection isn't closed exactly once, or a call goes on.
func (f *Fakes) check(t testing.TB) {
	t.Helper()
	for _, c := range f.Conns() {
		if n := c.Closed(); n != 1 {
			t.Errorf("mcppooltest: connection %s was closed %d times, not once", c, n)
		}
	}
	running := f.running()
	for deadline := time.Now().Add(callTime); len(running) > 0 && time.Now().Before(deadline); running = f.running() {
		time.Sleep(time.Millisecond)
	}
	for _, call := range running {
		t.Errorf("mcppooltest: the call %q still runs: a Tool must return when its ctx ends", call)
	}
}

func (f *Fakes) running() (list []*Call) {
	for _, call := range f.Calls() {
		if !call.ended() {
			list = append(list, call)
		}
	}
	return list
}

// Dial is [mcppool.Options.Dial], for a pool that the code under test makes by itself.
func (f *Fakes) Dial(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
	c := f.newConn(ctx, srv)
	if f.Connect != nil {
		if err := f.Connect(ctx, c); err != nil {
			f.logf("%s: connect failed: %v", c, err)
			c.lose(err)
			return nil, err
		}
	}
	f.mu.Lock()
	f.conns = append(f.conns, c)
	f.mu.Unlock()
	f.logf("%s: connected", c)
	if f.Request != nil {
		return requester{client{c}}, nil
	}
	return client{c}, nil
}

// Dials returns how many connects were begun.
func (f *Fakes) Dials() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// Conns returns the connections that there were so far, those that are closed included,
// in the order in which they came up.
func (f *Fakes) Conns() []*Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.conns)
}

// Calls returns the calls of tools so far, in the order in which they came to the servers.
func (f *Fakes) Calls() []*Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Log returns a line for each thing that happened to the servers: connects, calls,
// notifications, deaths and closes, in the order in which they happened. Its lines are for
// people, and for a test of what follows from what: a close, for one, may come after the
// answer of a later call.
func (f *Fakes) Log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

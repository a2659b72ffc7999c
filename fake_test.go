package mcppool_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// fakes is a Dial whose servers live in memory, and what it saw of them.
type fakes struct {
	connectTime time.Duration // how long a connect takes
	stubborn    bool          // a connect doesn't look at its ctx
	connectErr  error         // what a connect ends with
	call        func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error)
	list        func(req mcp.ListToolsRequest) (*mcp.ListToolsResult, error)
	listCtx     func(ctx context.Context) error // what a listing waits for, and ends with
	closeTime   time.Duration

	mu      sync.Mutex
	odd     int   // how many of the next connects fail
	oddErr  error // with this; if nil, they are lost as they come up
	dials   int   // begun
	clients []*fake
}

// fake is one connection. Its state is the texts that were sent to it.
type fake struct {
	f    *fakes
	srv  mcppool.Server
	done chan struct{}

	mu      sync.Mutex
	lost    bool
	err     error
	closes  int
	calls   []string
	running int // calls under way
	overlap bool
}

func (f *fakes) dial(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
	f.mu.Lock()
	f.dials++
	f.mu.Unlock()
	if f.connectTime > 0 {
		gone := ctx.Done()
		if f.stubborn {
			gone = nil
		}
		select {
		case <-time.After(f.connectTime):
		case <-gone:
			return nil, ctx.Err()
		}
	}
	if f.connectErr != nil {
		return nil, f.connectErr
	}
	c := &fake{f: f, srv: srv, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.odd > 0 {
		f.odd--
		if f.oddErr != nil {
			return nil, f.oddErr
		}
		c.die()
	}
	f.clients = append(f.clients, c)
	return c, nil
}

// next has the next n connects fail, or, for a nil err, be lost as they come up.
func (f *fakes) next(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odd, f.oddErr = n, err
}

func (f *fakes) all() []*fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*fake(nil), f.clients...)
}

func (f *fakes) dialed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// closed is how often each client was closed.
func (f *fakes) closed() []int {
	var n []int
	for _, c := range f.all() {
		n = append(n, c.closed())
	}
	return n
}

func (c *fake) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c.mu.Lock()
	c.calls = append(c.calls, req.Params.Name)
	c.running++
	c.overlap = c.overlap || c.running > 1
	lost := c.lost
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	if lost {
		return nil, transport.NewError(transport.ErrTransportClosed)
	}
	if c.f.call != nil {
		return c.f.call(ctx, c, req)
	}
	return mcp.NewToolResultText(req.Params.Name), nil
}

// sleep is a call that takes d, ended early by ctx and by the connection.
func (c *fake) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return transport.NewError(transport.ErrTransportClosed)
	}
}

func (c *fake) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	if c.f.listCtx != nil {
		if err := c.f.listCtx(ctx); err != nil {
			return nil, err
		}
	}
	if c.f.list != nil {
		return c.f.list(req)
	}
	return &mcp.ListToolsResult{Tools: []mcp.Tool{mcp.NewTool("echo")}}, nil
}

func (c *fake) Done() <-chan struct{} { return c.done }

func (c *fake) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// die loses the connection, as the end of the process does.
func (c *fake) die() { c.lose(errors.New("the process ended")) }

func (c *fake) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lost {
		c.lost, c.err = true, err
		close(c.done)
	}
}

func (c *fake) Close() error {
	c.lose(errors.New("closed"))
	c.mu.Lock()
	c.closes++
	c.mu.Unlock()
	if c.f.closeTime > 0 {
		time.Sleep(c.f.closeTime)
	}
	return nil
}

func (c *fake) closed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}

// overlapped reports whether two calls ran at once. One that ties with the pool's
// close may still come to a client that is closed.
func (c *fake) overlapped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overlap
}

func (c *fake) served() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// newPool makes a pool over f that the test's end closes.
func newPool(t testing.TB, f *fakes, opts *mcppool.Options) *mcppool.Pool {
	t.Helper()
	var o mcppool.Options
	if opts != nil {
		o = *opts
	}
	if o.Dial == nil {
		o.Dial = f.dial
	}
	p, err := mcppool.New(&o)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Close()
		s := p.Stats()
		require.Zero(t, s.Open, "no session is left after Close")
		for _, c := range f.all() {
			require.Equal(t, 1, c.closed(), "each client is closed exactly once")
			require.False(t, c.overlapped(), "no two calls of a scope at once")
		}
	})
	return p
}

var stdio = mcppool.Server{Command: "server", Args: []string{"--stdio"}}

// call calls a tool without arguments and gives the error.
func call(ctx context.Context, p *mcppool.Pool, srv mcppool.Server, scope string) error {
	_, err := p.CallTool(ctx, srv, mcppool.Call{Tool: "t", Scope: scope})
	return err
}

// after runs f in a goroutine and gives its error.
func after(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

// within is a ctx with a deadline, cancelled at the test's end.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// record is a call that notes the arguments that go over the wire.
func record(got *string) func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(_ context.Context, _ *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		*got = string(req.Params.RawArguments)
		return mcp.NewToolResultText(""), nil
	}
}

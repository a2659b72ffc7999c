package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// stressTime is how long the stress test runs: MCPPOOL_STRESS, or a second.
func stressTime(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("MCPPOOL_STRESS"); s != "" {
		d, err := time.ParseDuration(s)
		require.NoError(t, err, "MCPPOOL_STRESS")
		return d
	}
	return time.Second
}

// world is the stress test's servers and the invariants that they watch.
type world struct {
	t *testing.T

	mu      sync.Mutex
	clients []*stressed
	sent    map[string]int // by call: how often it reached a server
}

type stressed struct {
	w      *world
	server string
	done   chan struct{}
	lose   sync.Once

	running atomic.Int32
	scope   atomic.Value // of the first call: it must be the only one
	closes  atomic.Int32
}

type ctxScope struct{}

func (w *world) dial(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
	switch rand.IntN(20) {
	case 0:
		return nil, errors.New("no luck")
	case 1: // a connect that doesn't look at its ctx
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	default:
		select {
		case <-time.After(time.Duration(rand.IntN(1000)) * time.Microsecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c := &stressed{w: w, server: srv.Env["N"], done: make(chan struct{})}
	w.mu.Lock()
	w.clients = append(w.clients, c)
	w.mu.Unlock()
	return c, nil
}

func (c *stressed) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	scope, _ := ctx.Value(ctxScope{}).(string)
	if n := c.running.Add(1); n > 1 {
		c.w.t.Errorf("%d calls of scope %q at once", n, scope)
	}
	defer c.running.Add(-1)
	if first := c.scope.Swap(scope); first != nil && (first != scope || scope == "") {
		c.w.t.Errorf("a session of scope %q serves %q", first, scope)
	}
	if want := ctx.Value(ctxServer{}); want != c.server {
		c.w.t.Errorf("a call for server %v reached %v", want, c.server)
	}
	c.w.mu.Lock()
	c.w.sent[req.Params.Name]++
	if n := c.w.sent[req.Params.Name]; n > 1 {
		c.w.t.Errorf("call %s was sent %d times", req.Params.Name, n)
	}
	c.w.mu.Unlock()
	if rand.IntN(30) == 0 {
		c.die()
	}
	select {
	case <-time.After(time.Duration(rand.IntN(1500)) * time.Microsecond):
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, transport.NewError(transport.ErrTransportClosed)
	}
}

func (c *stressed) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}
func (c *stressed) die()                  { c.lose.Do(func() { close(c.done) }) }
func (c *stressed) Done() <-chan struct{} { return c.done }
func (c *stressed) Err() error            { return nil }
func (c *stressed) Close() error {
	if n := c.closes.Add(1); n > 1 {
		c.w.t.Errorf("a client was closed %d times", n)
	}
	c.die()
	time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
	return nil
}

type ctxServer struct{}

// TestStressKeepsTheInvariants runs random calls, cancellations, deaths, closes
// and configuration changes from many goroutines.
func TestStressKeepsTheInvariants(t *testing.T) {
	w := &world{t: t, sent: make(map[string]int)}
	p, err := mcppool.New(&mcppool.Options{
		Dial: w.dial, MaxSessions: 6, IdleTimeout: 5 * time.Millisecond, ConnectTimeout: 20 * time.Millisecond,
	})
	require.NoError(t, err)
	server := func() mcppool.Server {
		return mcppool.Server{Command: "x", Env: map[string]string{"N": fmt.Sprint(rand.IntN(3))}}
	}
	scope := func() string { return []string{"", "a", "b", "c", "d"}[rand.IntN(5)] }

	var (
		wg    sync.WaitGroup
		calls atomic.Int64
		ends  [6]atomic.Int64
	)
	stop := time.Now().Add(stressTime(t))
	for g := range 16 {
		wg.Go(func() {
			for n := 0; time.Now().Before(stop); n++ {
				srv, sc := server(), scope()
				ctx := context.WithValue(context.WithValue(t.Context(), ctxScope{}, sc), ctxServer{}, srv.Env["N"])
				d := time.Duration(rand.IntN(6000)) * time.Microsecond
				ctx, cancel := context.WithTimeout(ctx, d)
				if rand.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000))*time.Microsecond, cancel)
				}
				c := mcppool.Call{Tool: fmt.Sprintf("%d-%d", g, n), Scope: sc}
				if rand.IntN(8) == 0 {
					c.Check = func() bool { return rand.IntN(8) > 0 }
				}
				var err error
				if rand.IntN(6) == 0 && sc != "" {
					err = p.Do(ctx, srv, mcppool.Borrow{Scope: sc}, func(ctx context.Context, s *mcppool.Session) error {
						_, err := s.CallTool(ctx, c)
						return err
					})
				} else {
					_, err = p.CallTool(ctx, srv, c)
				}
				calls.Add(1)
				ends[kind(t, err)].Add(1)
				if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a deadline that isn't the caller's: %v", err)
				}
				w.mu.Lock()
				if w.sent[c.Tool] > 0 && mcppool.SafeToRetry(err) && !errors.Is(err, mcppool.ErrClosed) {
					t.Errorf("safe to retry, but sent: %v", err)
				}
				w.mu.Unlock()
				cancel()
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
				switch rand.IntN(7) {
				case 0:
					p.CloseServer(server())
				case 1:
					p.CloseCommand(server())
				case 2:
					p.RetireServer(server())
				case 3:
					p.CloseScope(scope())
				case 4:
					p.CloseIdle(0)
				case 5:
					for range p.Sessions() {
						p.Stats()
					}
				case 6:
					w.mu.Lock()
					if n := len(w.clients); n > 0 {
						w.clients[rand.IntN(n)].die()
					}
					w.mu.Unlock()
				}
				if err := sumsUp(p.Stats()); err != nil {
					t.Error(err)
				}
				if err := mcppool.CheckInvariants(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Close())
	require.NoError(t, sumsUp(p.Stats()))
	require.Zero(t, mcppool.Remembered(p))
	for _, c := range w.clients {
		require.EqualValues(t, 1, c.closes.Load(), "each client is closed exactly once")
	}
	t.Logf("%d calls, %d connections; answered %d, ctx %d, lost %d, closed %d, not started %d",
		calls.Load(), len(w.clients), ends[0].Load(), ends[1].Load(), ends[2].Load(), ends[3].Load(), ends[4].Load())
}

// kind sorts the ends that a call may have; any other is a failure.
func kind(t *testing.T, err error) int {
	t.Helper()
	var start *mcppool.StartError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return 1
	case errors.Is(err, mcppool.ErrSessionLost):
		return 2
	case errors.Is(err, mcppool.ErrServerClosed):
		return 3
	case errors.As(err, &start):
		return 4
	default:
		t.Errorf("unexpected: %v", err)
		return 5
	}
}

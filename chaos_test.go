//go:build linux

package mcppool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
)

// TestChaosKeepsItsPromises calls real servers of different faults from eight workers,
// while their processes are killed, stopped and continued at random. It runs for
// MCPPOOL_CHAOS. Calls return within 250 ms after their deadline, or
// MCPPOOL_CHAOS_SLACK where a machine needs more.
func TestChaosKeepsItsPromises(t *testing.T) {
	begun := goleak.IgnoreCurrent()
	fds := countFDs(t)
	c := newChaos(t)
	var workers, killer sync.WaitGroup
	stop := time.Now().Add(durationFrom(t, "MCPPOOL_CHAOS", 3*time.Second))
	for i := range 8 {
		workers.Go(func() { c.work(i, stop) })
	}
	killer.Go(func() { c.kill(stop) })
	killer.Go(func() { c.watch(stop) })
	workers.Wait()
	killer.Wait()
	c.checkDeadlines()
	require.NoError(t, mcppool.CheckInvariants(c.pool))
	start := time.Now()
	require.NoError(t, c.pool.Close())
	require.Less(t, time.Since(start), 5*time.Second, "Close ends what is stopped or deaf, all at once")

	require.Empty(t, children(t), "no child is left, not even as a zombie")
	for _, pid := range pids(t, c.pids) {
		// Another process may have got its pid since. What a killed wrapper left was
		// ended with its group, and is reaped by init.
		require.Eventually(t, func() bool { return !c.isMine(pid) }, 5*time.Second, 5*time.Millisecond, "process %d is left", pid)
	}
	c.checkEffects()
	require.LessOrEqual(t, countFDs(t), fds, "no file is left open")
	goleak.VerifyNone(t, begun)
	require.NoError(t, sumsUp(c.pool.Stats()))
	t.Logf("calls by how they ended: %v; signals: %v; stalls: %d", c.ends, c.signals, len(c.stalls))
	t.Logf("%+v", c.pool.Stats())
}

// chaos is the run of one test.
type chaos struct {
	t       *testing.T
	pool    *mcppool.Pool
	servers []mcppool.Server
	pids    string // file to which servers write their pids
	effects string // and their calls
	slack   time.Duration

	stalls []stall // in order; read when all is over

	mu      sync.Mutex // protects the fields below
	calls   []*chaosCall
	ends    map[string]int
	signals map[os.Signal]int
}

type chaosCall struct {
	id              string
	deadline, ended time.Time
	err             error
}

// stall is a time in which the machine was late.
type stall struct {
	start time.Time
	late  time.Duration
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	dir := t.TempDir()
	c := &chaos{
		t: t, pids: filepath.Join(dir, "pids"), effects: filepath.Join(dir, "effects"),
		slack: durationFrom(t, "MCPPOOL_CHAOS_SLACK", 250*time.Millisecond),
		ends:  make(map[string]int), signals: make(map[os.Signal]int),
	}
	server := func(mode string, env ...string) mcppool.Server {
		srv := real(t, mode, append(env, "PIDFILE", c.pids, "EFFECTS", c.effects)...)
		srv.Protocol = mcppool.ProtocolLegacy
		return srv
	}
	healthy := server("state")
	healthy.Policy.AfterAbandon = mcppool.AbandonProbe
	slow := server("slow to start", "DELAY", "100ms")
	deaf := server("deaf to the end of its input")
	crashing := server("state", "CRASHING", "1")
	wrapped := server("state", "WRAPPED", "1")
	wrapped.Args = []string{"-c", `"` + wrapped.Command + `"; exit $?`}
	wrapped.Command = "sh"
	wrapped.Policy.AfterAbandon = mcppool.AbandonProbe
	c.servers = []mcppool.Server{healthy, slow, deaf, crashing, wrapped}
	p, err := mcppool.New(&mcppool.Options{
		MaxSessions: 8, IdleTimeout: 300 * time.Millisecond, ConnectTimeout: 2 * time.Second, CloseTimeout: 400 * time.Millisecond,
		ProbeTimeout: 200 * time.Millisecond, Limits: mcppool.Limits{MaxProcesses: 10, MaxStarting: 4},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	c.pool = p
	return c
}

// work makes calls, one after the other.
func (c *chaos) work(worker int, stop time.Time) {
	for n := 0; time.Now().Before(stop); n++ {
		srv := c.servers[rand.IntN(len(c.servers))]
		scope := []string{"", "a", "b", "c"}[rand.IntN(4)]
		id := fmt.Sprintf("%d-%d", worker, n)
		timeout := time.Duration(20+rand.IntN(1500)) * time.Millisecond
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		if rand.IntN(8) == 0 {
			time.AfterFunc(time.Duration(rand.Int64N(int64(timeout))), cancel)
		}
		args := map[string]any{"id": id, "scope": scope, "ms": rand.IntN(40), "die": srv.Env["CRASHING"] != "" && rand.IntN(4) == 0}
		if rand.IntN(10) == 0 {
			args["ms"] = 3000 // it is given up
		}
		res, err := c.pool.CallTool(ctx, srv, mcppool.Call{Tool: "effect", Args: args, Scope: scope})
		c.note(ctx, id, scope, res, err)
		cancel()
	}
}

// note judges how a call has ended.
func (c *chaos) note(ctx context.Context, id, scope string, res *mcp.CallToolResult, err error) {
	ended := time.Now()
	deadline, _ := ctx.Deadline()
	how := "answered"
	var start *mcppool.StartError
	switch {
	case err == nil:
		text := res.Content[0].(mcp.TextContent).Text
		want := fmt.Sprintf("%s of scope %q, call ", id, scope)
		if res.IsError || !strings.HasPrefix(text, want) || scope == "" && text != want+"1" {
			c.t.Errorf("call %s in scope %q got %q", id, scope, text)
		}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		how = ctx.Err().Error()
	case errors.Is(err, mcppool.ErrSessionLost):
		how = "lost"
	case errors.As(err, &start):
		how = "not started"
	default:
		c.t.Errorf("call %s ends with %v", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, &chaosCall{id, deadline, ended, err})
	c.ends[how]++
}

// checkEffects looks whether each call ran once at most, those that were answered once,
// and those that are safe to retry never.
func (c *chaos) checkEffects() {
	data, err := os.ReadFile(c.effects)
	require.NoError(c.t, err)
	ran := make(map[string]int)
	for id := range strings.FieldsSeq(string(data)) {
		ran[id]++
	}
	for _, call := range c.calls {
		switch n := ran[call.id]; {
		case n > 1:
			c.t.Errorf("call %s ran %d times", call.id, n)
		case n == 0 && call.err == nil:
			c.t.Errorf("call %s was answered, and didn't run", call.id)
		case n > 0 && mcppool.SafeToRetry(call.err):
			c.t.Errorf("call %s ran, and is safe to retry: %v", call.id, call.err)
		}
	}
}

// kill sends signals to the processes of the pool: servers, wrappers, and the servers
// of wrappers.
func (c *chaos) kill(stop time.Time) {
	var stopped sync.WaitGroup
	for time.Now().Before(stop) {
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		all := descendants(c.t)
		if len(all) == 0 {
			continue
		}
		pid := all[rand.IntN(len(all))]
		if rand.IntN(3) > 0 {
			c.signal(pid, syscall.SIGKILL)
			continue
		}
		c.signal(pid, syscall.SIGSTOP)
		if rand.IntN(4) > 0 {
			stopped.Go(func() {
				time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
				c.signal(pid, syscall.SIGCONT)
			})
		}
	}
	stopped.Wait()
}

// watch finds out how late timers are on this machine, and when.
func (c *chaos) watch(stop time.Time) {
	const nap = 5 * time.Millisecond
	for start := time.Now(); start.Before(stop); start = time.Now() {
		time.Sleep(nap)
		if late := time.Since(start) - nap; late > 10*time.Millisecond {
			c.stalls = append(c.stalls, stall{start, late})
		}
	}
}

// checkDeadlines looks whether each call returned in time. What the machine was late
// itself meanwhile is no fault of the pool.
func (c *chaos) checkDeadlines() {
	for _, call := range c.calls {
		var machine time.Duration
		for _, s := range c.stalls {
			if s.start.Before(call.ended) && s.start.Add(s.late).After(call.deadline) {
				machine = max(machine, s.late)
			}
		}
		if late := call.ended.Sub(call.deadline); late > c.slack+machine {
			c.t.Errorf("call %s returns %s after its deadline, in which the machine was up to %s late: %v", call.id, late, machine, call.err)
		}
	}
}

// signal sends a signal to a process that is one of the pool's. It is held by a handle
// while that is found out, so that no other can get its pid meanwhile.
func (c *chaos) signal(pid int, sig syscall.Signal) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if c.isMine(pid) && p.Signal(sig) == nil {
		c.mu.Lock()
		c.signals[sig]++
		c.mu.Unlock()
	}
}

// isMine reports whether a process that lives is one of this test's servers.
func (c *chaos) isMine(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte("PIDFILE="+c.pids))
}

// descendants are the children of this process and theirs.
func descendants(t testing.TB) []int {
	t.Helper()
	all := children(t)
	for i := 0; i < len(all); i++ {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", all[i]))
		for f := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

func countFDs(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

// durationFrom is a duration that an environment variable may set.
func durationFrom(t testing.TB, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	require.NoError(t, err, name)
	return d
}

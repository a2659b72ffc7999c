package mcppool_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// The behaviours again, with real child processes.

func realPool(t testing.TB, opts *mcppool.Options) *mcppool.Pool {
	t.Helper()
	p, err := mcppool.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.Zero(t, p.Stats().Open)
	})
	return p
}

// pids are those that a server with PIDFILE has written so far.
func pids(t testing.TB, file string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var all []int
	for f := range strings.FieldsSeq(string(data)) {
		n, err := strconv.Atoi(f)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// requireGone waits until no process of a list is left, not even as a zombie.
func requireGone(t testing.TB, pids []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(pids, processExists)
	}, 5*time.Second, 5*time.Millisecond)
}

func TestProcessKeepsItsStatePerScope(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state")
	note := func(scope, text string) string { return say(t, p, srv, scope, "note", map[string]any{"text": text}) }
	require.Equal(t, "[a1]", note("A", "a1"))
	require.Equal(t, "[b1]", note("B", "b1"))
	require.Equal(t, "[a1 a2]", note("A", "a2"))
	require.Equal(t, "[x]", note("", "x"))
	require.Equal(t, "[y]", note("", "y"))
	require.Equal(t, 2, p.Stats().Kept)
}

func TestHTTPServerIsConnectedForEachCall(t *testing.T) {
	for name, start := range map[string]func(*server.MCPServer) (url string, stop func()){
		"streamable": func(s *server.MCPServer) (string, func()) {
			ts := httptest.NewServer(server.NewStreamableHTTPServer(s))
			return ts.URL, ts.Close
		},
		"SSE": func(s *server.MCPServer) (string, func()) {
			ts := httptest.NewUnstartedServer(nil)
			sse := server.NewSSEServer(s, server.WithBaseURL("http://"+ts.Listener.Addr().String()))
			ts.Config.Handler = sse
			ts.Start()
			return ts.URL + "/sse", ts.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, stop := start(newTestServer())
			defer stop()
			p := realPool(t, nil)
			srv := mcppool.Server{URL: url + "?token=hunter2secret"}
			require.Equal(t, "[x]", say(t, p, srv, "s", "note", map[string]any{"text": "x"}))
			require.Equal(t, "[x y]", say(t, p, srv, "", "note", map[string]any{"text": "y"}), "the server's own state")
			require.Zero(t, p.Stats().Kept)
			tools, err := p.ListTools(t.Context(), srv, mcppool.Borrow{})
			require.NoError(t, err)
			require.NotEmpty(t, tools)
			_, err = p.CallTool(t.Context(), srv, mcppool.Call{Tool: "no such tool"})
			var rpc *mcppool.RPCError
			require.ErrorAs(t, err, &rpc)
			require.ErrorIs(t, err, mcp.ErrInvalidParams)
			stop()
			_, err = p.CallTool(t.Context(), srv, mcppool.Call{Tool: "note"})
			var failed *mcppool.StartError
			require.ErrorAs(t, err, &failed)
			require.NotContains(t, err.Error(), "hunter2secret")
		})
	}
}

func TestProcessKilledWhileIdleIsReplaced(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state")
	pid, err := strconv.Atoi(say(t, p, srv, "s", "pid", nil))
	require.NoError(t, err)
	kill(t, pid)
	requireGone(t, []int{pid})
	require.NotEqual(t, strconv.Itoa(pid), say(t, p, srv, "s", "pid", nil))
	require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonCrashed])
}

func TestProcessLivesOnWhenAToolFails(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state", "TOKEN", "hunter2secret")
	pid := say(t, p, srv, "s", "pid", nil)
	res, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "fail", Scope: "s"})
	require.NoError(t, err)
	require.True(t, res.IsError)
	for tool, code := range map[string]int{"no such tool": mcp.INVALID_PARAMS, "broken": mcp.INTERNAL_ERROR} {
		_, err = p.CallTool(t.Context(), srv, mcppool.Call{Tool: tool, Scope: "s"})
		var rpc *mcppool.RPCError
		require.ErrorAs(t, err, &rpc)
		require.Equal(t, code, rpc.Code)
		require.NotContains(t, err.Error(), "hunter2secret")
	}
	require.Equal(t, pid, say(t, p, srv, "s", "pid", nil))
}

func TestProcessThatDiesDuringACallSaysWhyWithoutSecrets(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state", "TOKEN", "hunter2secret")
	pid := say(t, p, srv, "s", "pid", nil)
	_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "die", Scope: "s"})
	require.ErrorIs(t, err, mcppool.ErrSessionLost)
	require.False(t, mcppool.SafeToRetry(err))
	var lost *mcppool.SessionLostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "exit status 7", lost.Exit)
	require.Contains(t, lost.Stderr, "dying with [redacted]")
	require.ErrorContains(t, err, "exit status 7")
	require.NotContains(t, err.Error(), "hunter2secret")
	require.NotEqual(t, pid, say(t, p, srv, "s", "pid", nil))
}

func TestProcessOfAClosedServerReleasesItsCallAtOnce(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state", "PIDFILE", filepath.Join(t.TempDir(), "pids"))
	say(t, p, srv, "s", "pid", nil)
	c := after(func() error {
		_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "sleep", Args: map[string]any{"ms": 60000}, Scope: "s"})
		return err
	})
	waitInFlight(t, p, 1)
	start := time.Now()
	p.CloseServer(srv)
	require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
	require.Less(t, time.Since(start), 5*time.Second)
	require.Len(t, pids(t, srv.Env["PIDFILE"]), 1, "no reconnect")
}

// waitInFlight waits until n calls are in flight.
func waitInFlight(t testing.TB, p *mcppool.Pool, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		sum := 0
		for s := range p.Sessions() {
			sum += s.InFlight
		}
		return sum == n
	}, 10*time.Second, time.Millisecond)
}

func TestProcessCallPastItsDeadlineReturnsOnTimeAndLeavesNothing(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state", "PIDFILE", filepath.Join(t.TempDir(), "pids"))
	say(t, p, srv, "s", "pid", nil)
	start := time.Now()
	_, err := p.CallTool(within(t, 50*time.Millisecond), srv, mcppool.Call{Tool: "sleep", Args: map[string]any{"ms": 60000}, Scope: "s"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 5*time.Second)
	say(t, p, srv, "s", "pid", nil)
	all := pids(t, srv.Env["PIDFILE"])
	require.Len(t, all, 2)
	requireGone(t, all[:1])
}

func TestProcessWhoseConnectIsGivenUpIsGone(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "slow to start", "DELAY", "1m", "PIDFILE", filepath.Join(t.TempDir(), "pids"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	require.ErrorIs(t, call(ctx, p, srv, "s"), context.Canceled)
	require.ErrorIs(t, call(within(t, 200*time.Millisecond), p, srv, "s"), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 10*time.Second)
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, 10*time.Second, time.Millisecond)
	requireGone(t, children(t))
}

func TestProcessConnectServesThoseThatStillWait(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "slow to start", "DELAY", "300ms", "PIDFILE", filepath.Join(t.TempDir(), "pids"))
	srv.Protocol = mcppool.ProtocolLegacy
	first, leave := context.WithCancel(t.Context())
	gone := after(func() error { return call(first, p, srv, "s") })
	waitInFlight(t, p, 1)
	var others []<-chan error
	for range 4 {
		others = append(others, after(func() error {
			_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "pid", Scope: "s"})
			return err
		}))
	}
	waitInFlight(t, p, 5)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	for _, c := range others {
		require.NoError(t, <-c)
	}
	require.Len(t, pids(t, srv.Env["PIDFILE"]), 1)
}

func TestProcessOfAServerClosedWhileConnectingIsGone(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "slow to start", "DELAY", "1m")
	c := after(func() error { return call(t.Context(), p, srv, "s") })
	require.Eventually(t, func() bool { return len(children(t)) > 0 }, 10*time.Second, time.Millisecond)
	all := children(t)
	p.CloseServer(srv)
	require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
	requireGone(t, all)
	require.Zero(t, p.Stats().Kept)
}

func TestProcessesAreAllGoneAfterCloseFromManyGoroutines(t *testing.T) {
	p := realPool(t, nil)
	file := filepath.Join(t.TempDir(), "pids")
	srv := real(t, "state", "PIDFILE", file)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			_ = call(within(t, time.Duration(10+i*20)*time.Millisecond), p, srv, strconv.Itoa(i%4))
		})
	}
	time.Sleep(50 * time.Millisecond)
	for i := range 20 {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				p.CloseServer(srv)
			case 1:
				_ = p.Shutdown(within(t, time.Millisecond))
			case 2:
				_ = p.Close()
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Close())
	for _, pid := range pids(t, file) {
		require.False(t, processExists(pid))
	}
}

func TestProcessIsGoneWhenItsIdleTimeIsUp(t *testing.T) {
	p := realPool(t, &mcppool.Options{IdleTimeout: 50 * time.Millisecond})
	srv := real(t, "state")
	pid, _ := strconv.Atoi(say(t, p, srv, "s", "pid", nil))
	require.Equal(t, "slept", say(t, p, srv, "busy", "sleep", map[string]any{"ms": 200}))
	requireGone(t, []int{pid})
	require.Eventually(t, func() bool { return p.Stats().Open == 0 }, 10*time.Second, time.Millisecond)
	require.NotEqual(t, strconv.Itoa(pid), say(t, p, srv, "s", "pid", nil))
}

func TestProcessesOverTheCapAreTrimmed(t *testing.T) {
	p := realPool(t, &mcppool.Options{MaxSessions: 2})
	srv := real(t, "state")
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "sleep", Args: map[string]any{"ms": 50}, Scope: strconv.Itoa(i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, p.Stats().Kept, 2)
}

func TestProcessGetsOnlyTheSafeEnvironment(t *testing.T) {
	t.Setenv("MCPPOOL_PLANTED", "planted")
	t.Setenv("LC_ALL", "C.UTF-8")
	srv := real(t, "state", "MINE", "1")
	p := realPool(t, nil)
	var env []string
	require.NoError(t, json.Unmarshal([]byte(say(t, p, srv, "s", "getenv", map[string]any{"name": "*"})), &env))
	require.Contains(t, env, "MINE=1")
	require.Contains(t, env, "LC_ALL=C.UTF-8")
	require.Contains(t, env, "PATH="+os.Getenv("PATH"))
	require.NotContains(t, env, "MCPPOOL_PLANTED=planted")

	named := realPool(t, &mcppool.Options{InheritEnv: []string{"MCPPOOL_PLANTED"}})
	require.Equal(t, "planted", say(t, named, srv, "s", "getenv", map[string]any{"name": "MCPPOOL_PLANTED"}))
	all := realPool(t, &mcppool.Options{InheritEnv: []string{"*"}})
	require.Equal(t, "planted", say(t, all, srv, "s", "getenv", map[string]any{"name": "MCPPOOL_PLANTED"}))
}

func TestProcessStartsInItsDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	srv := real(t, "state")
	srv.Dir = dir
	p := realPool(t, nil)
	require.Equal(t, dir, say(t, p, srv, "s", "getwd", nil))
}

func TestMissingCommandSaysWhichNameOnWhichPath(t *testing.T) {
	p := realPool(t, nil)
	err := call(t.Context(), p, mcppool.Server{Command: "no-such-program", Env: map[string]string{"PATH": "/no/such/path"}}, "s")
	var failed *mcppool.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "start", failed.Phase)
	require.ErrorContains(t, err, "no-such-program")
	require.ErrorContains(t, err, "/no/such/path")
}

func TestMissingDirectoryIsNotReportedAsAMissingCommand(t *testing.T) {
	p := realPool(t, nil)
	for _, dir := range []string{"/no/such/dir", "no/such/dir"} {
		srv := real(t, "state")
		srv.Dir = dir
		err := call(t.Context(), p, srv, "s")
		var bad *mcppool.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Server.Dir", bad.Field)
		require.ErrorContains(t, err, "doesn't exist")
	}
}

func TestProcessThatExitsAtOnceSaysWhyWithoutSecrets(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "exits at once", "TOKEN", "hunter2secret")
	err := call(t.Context(), p, srv, "s")
	var failed *mcppool.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "exit status 3", failed.Exit)
	require.Contains(t, failed.Stderr, "cannot start: token is [redacted]")
	require.NotContains(t, err.Error(), "hunter2secret")
	require.True(t, mcppool.SafeToRetry(err))
}

func TestIntegersKeepTheirDigitsBothWays(t *testing.T) {
	p := realPool(t, nil)
	const digits = `{"n":9007199254740993123}`
	require.Equal(t, digits, say(t, p, real(t, "state"), "s", "rawargs", json.RawMessage(digits)))
}

func TestServerThatIsSlowToStartIsNotTakenForASilentOne(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only there can be seen that it hasn't read the question")
	}
	p := realPool(t, nil)
	srv := real(t, "slow to start", "DELAY", "2s", "PIDFILE", filepath.Join(t.TempDir(), "pids"))
	say(t, p, srv, "s", "pid", nil)
	require.Len(t, pids(t, srv.Env["PIDFILE"]), 1)
	for s := range p.Sessions() {
		require.Equal(t, mcp.LATEST_PROTOCOL_VERSION, s.Protocol, "it wasn't taken for an old one either")
		require.Equal(t, "test", s.Info.Name)
		require.Equal(t, pids(t, srv.Env["PIDFILE"])[0], s.PID)
	}
	// Started twice, it would write its pid before it is ended only when it is
	// quick; so look at what is there besides.
	require.Len(t, children(t), 1)
}

func TestBytesOfAllProcessesAreCounted(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "state")
	say(t, p, srv, "a", "pid", nil)
	say(t, p, srv, "b", "pid", nil)
	before := p.Stats()
	const n = 100_000
	text := strings.Repeat("x", n)
	for _, scope := range []string{"a", "b"} {
		say(t, p, srv, scope, "rawargs", map[string]any{"text": text})
	}
	after := p.Stats()
	const envelope = 500 // of a message
	require.InDelta(t, 2*n, after.BytesSent-before.BytesSent, 2*envelope)
	require.InDelta(t, 2*n, after.BytesReceived-before.BytesReceived, 2*envelope)
	require.NoError(t, p.Close())
	require.GreaterOrEqual(t, p.Stats().BytesReceived, after.BytesReceived, "those of sessions that have ended stay")
}

func TestStartErrorSaysWhatTheServerWroteOnStdout(t *testing.T) {
	p := realPool(t, nil)
	srv := real(t, "explains itself on stdout", "TOKEN", "a-secret-of-some-length")
	err := call(within(t, time.Minute), p, srv, "s")
	var start *mcppool.StartError
	require.ErrorAs(t, err, &start)
	require.Contains(t, start.Stdout, "please set TOKEN")
	require.Contains(t, err.Error(), "please set TOKEN")
	require.NotContains(t, err.Error(), "a-secret-of-some-length")
}

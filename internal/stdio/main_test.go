package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
	"github.com/mcppool/mcppool/mcppooltest"
)

func TestMain(m *testing.M) {
	mcppooltest.Main(m)
}

// serverConfig is a server in these modes.
func serverConfig(t testing.TB, traits ...string) stdio.Config {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	env := []string{mark(t)}
	for name, value := range mcppooltest.Env(traits...) {
		env = append(env, name+"="+value)
	}
	for _, name := range []string{"SYSTEMROOT", "GOCOVERDIR", "TMP", "TEMP"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return stdio.Config{
		Proc:         proc.Config{Path: exe, Env: env},
		CloseTimeout: 2 * time.Second,
	}
}

// open connects to a server, which is gone at the end of the test at the latest.
func open(t testing.TB, cfg stdio.Config) *stdio.Conn {
	t.Helper()
	c, err := stdio.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the test has closed it before, if it got so far
	return c
}

// start connects to a server, and checks at the end of the test that nothing of
// it is left: no process, descriptor or goroutine.
func start(t testing.TB, cfg stdio.Config) *stdio.Conn {
	t.Helper()
	leaves := leavesNothing(t)
	c, err := stdio.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		leaves()
	})
	return c
}

// leavesNothing returns a check that the host is as it was.
func leavesNothing(t testing.TB) func() {
	t.Helper()
	current := goleak.IgnoreCurrent()
	files := descriptors(t)
	return func() {
		t.Helper()
		// A zombie that its own parent has yet to reap takes a moment.
		for deadline := time.Now().Add(2 * time.Second); len(family(t)) > 0 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		require.Empty(t, family(t))
		require.LessOrEqual(t, len(descriptors(t)), len(files), "%v, before %v", descriptors(t), files)
		if err := goleak.Find(current); err != nil {
			t.Error(err)
		}
	}
}

// descriptors lists what is open, but for what the runtime opens once for good.
func descriptors(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // no such thing on this system
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasSuffix(target, "/fd") {
			continue
		}
		open = append(open, target)
	}
	return open
}

// mark is in the environment of all processes that a test starts.
func mark(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("TEST_NAME=%d/%s", os.Getpid(), t.Name())
}

// family lists the processes that were started for this test, zombies among
// the host's children included.
func family(t testing.TB) []string {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	self := strconv.Itoa(os.Getpid())
	var found []string
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		env, _ := os.ReadFile(dir + "/environ")
		if len(fields) > 1 && fields[1] == self || strings.Contains(string(env), mark(t)+"\x00") {
			found = append(found, filepath.Base(dir)+" "+string(stat))
		}
	}
	return found
}

// call calls a tool and returns the text of its result.
func call(ctx context.Context, c *stdio.Conn, tool, args string) (string, error) {
	return request(ctx, c, stdio.ToolCall{Tool: tool, Args: json.RawMessage(args)})
}

func request(ctx context.Context, c *stdio.Conn, r stdio.ToolCall) (string, error) {
	answer, err := c.Call(ctx, r)
	if err != nil {
		return "", err
	}
	defer answer.Release()
	var result struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(answer.Result, &result); err != nil || len(result.Content) != 1 {
		return "", fmt.Errorf("no text in %s: %v", answer.Result, err)
	}
	return result.Content[0].Text, nil
}

// mustCall is for calls that answer.
func mustCall(t testing.TB, c *stdio.Conn, tool, args string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	text, err := call(ctx, c, tool, args)
	require.NoError(t, err)
	return text
}

// within runs f and checks how long it takes.
func within(t testing.TB, limit time.Duration, f func()) time.Duration {
	t.Helper()
	begin := time.Now()
	f()
	took := time.Since(begin)
	require.LessOrEqual(t, took, limit)
	return took
}

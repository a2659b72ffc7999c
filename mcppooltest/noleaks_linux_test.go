package mcppooltest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

// started is a server outside of any pool.
func started(t *testing.T, modes ...string) *exec.Cmd {
	t.Helper()
	srv := mcppooltest.Server(t, modes...)
	cmd := exec.CommandContext(t.Context(), srv.Command)
	for name, value := range srv.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

func TestNoLeaksFindsEachKindOfThing(t *testing.T) {
	defer mcppooltest.SetLeakTime(100 * time.Millisecond)()
	left := func(leak func() (undo func())) string {
		inner := &fakeT{TB: t}
		mcppooltest.NoLeaks(inner)
		undo := leak()
		defer undo()
		return inner.end()
	}
	require.Empty(t, left(func() func() { return func() {} }))

	require.Regexp(t, `goroutine \d+ .*(?s:.*)TestNoLeaksFindsEachKindOfThing`, left(func() func() {
		free, ended := make(chan struct{}), make(chan struct{})
		go func() {
			<-free
			close(ended)
		}()
		return func() {
			close(free)
			<-ended
		}
	}))
	require.Regexp(t, `left at the end of the test: descriptor \d+: /dev/null`, left(func() func() {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		return func() { f.Close() }
	}))
	require.Regexp(t, `temporary file or folder .*/forgotten`, left(func() func() {
		dir := filepath.Join(os.TempDir(), "forgotten")
		require.NoError(t, os.Mkdir(dir, 0o700))
		return func() { os.RemoveAll(dir) }
	}))
	require.Regexp(t, `process \d+ \(mcppooltest.tes, state [SR]\)`, left(func() func() {
		cmd := started(t, "ignoreeof")
		require.NoError(t, cmd.Start())
		return func() {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
		}
	}))
}

func TestNoLeaksFindsADaemonThatHasLeftItsServer(t *testing.T) {
	defer mcppooltest.SetLeakTime(100 * time.Millisecond)()
	inner := &fakeT{TB: t}
	mcppooltest.NoLeaks(inner)
	require.NoError(t, started(t, "setsid").Run()) // its stdin is at its end
	failed := inner.end()
	found := regexp.MustCompile(`process (\d+) `).FindStringSubmatch(failed)
	require.NotNil(t, found, failed)
	pid, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	daemon, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, daemon.Kill())
}

func TestNoLeaksFindsAPoolThatIsNotClosed(t *testing.T) {
	defer mcppooltest.SetLeakTime(100 * time.Millisecond)()
	inner := &fakeT{TB: t}
	mcppooltest.NoLeaks(inner)
	pool, err := mcppool.New(nil)
	require.NoError(t, err)
	srv := mcppooltest.Server(t)
	srv.PrivateDir = mcppool.DirPerScope
	tell(t, pool, srv, mcppool.Call{Tool: "pid"})
	failed := inner.end()
	require.Contains(t, failed, "process ")
	require.Contains(t, failed, "goroutine ")
	require.Contains(t, failed, "descriptor ")
	require.Contains(t, failed, "temporary file or folder ")
	pool.Close()
}

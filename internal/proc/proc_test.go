package proc_test

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

// bound is what a child may take for what it does at once: generous, as the
// machine may be busy.
const bound = 10 * time.Second

// selfConfig has the test binary play mode.
func selfConfig(t testing.TB, mode string, args ...string) proc.Config {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return proc.Config{Path: self, Args: args, Env: []string{
		modeEnv + "=" + mode,
		"GORACE=atexit_sleep_ms=0", // a child built with -race would idle for a second at its exit
	}}
}

func start(t testing.TB, cfg proc.Config) *proc.Process {
	t.Helper()
	p, err := proc.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(0) })
	return p
}

// readLine reads one line of the child's stdout and leaves the rest of what
// has come to nobody.
func readLine(t testing.TB, p *proc.Process) string {
	t.Helper()
	require.NoError(t, p.Stdout.SetReadDeadline(time.Now().Add(bound)))
	line, err := bufio.NewReaderSize(p.Stdout, 16).ReadString('\n')
	require.NoError(t, err)
	return line
}

// drain reads stdout to its end in the background.
func drain(p *proc.Process) {
	_ = p.Stdout.SetReadDeadline(time.Time{})
	go func() {
		_, _ = io.Copy(io.Discard, p.Stdout)
		p.Drained()
	}()
}

func waitFor(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(bound):
		require.FailNow(t, what+" did not come")
	}
}

func TestWellBehavedChildStopsInMilliseconds(t *testing.T) {
	p := start(t, selfConfig(t, "echo"))
	_, err := p.Stdin.WriteString("hello\n")
	require.NoError(t, err)
	require.Equal(t, "hello\n", readLine(t, p))
	drain(p)
	began := time.Now()
	p.Stop(bound)
	t.Log(time.Since(began))
	require.Less(t, time.Since(began), time.Second)
	require.Equal(t, "exit status 0", p.Exit().String())
	require.True(t, p.Exit().Requested)
}

func TestChildThatIgnoresEOFGetsSIGTERM(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-eof"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(400 * time.Millisecond)
	require.Equal(t, "exit status 7", p.Exit().String())
}

func TestChildThatIgnoresSIGTERMIsKilled(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-all"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(400 * time.Millisecond)
	require.Equal(t, "signal: killed", p.Exit().String())
}

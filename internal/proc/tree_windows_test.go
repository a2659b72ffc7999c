package proc_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

// detached has a process leave its parent's console and group.
var detached = &syscall.SysProcAttr{CreationFlags: 0x8 | syscall.CREATE_NEW_PROCESS_GROUP} // DETACHED_PROCESS

// job has a process leave its parent's group.
var job = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}

// requireSigterm skips the test where there are no signals.
func requireSigterm(t testing.TB) {
	t.Helper()
	t.Skip("a console's events are no signals")
}

// grandchildOf opens the grandchild that a wrapper prints the pid of.
func grandchildOf(t *testing.T, p *proc.Process) syscall.Handle {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(readLine(t, p)))
	require.NoError(t, err)
	h, err := syscall.OpenProcess(syscall.SYNCHRONIZE, false, uint32(pid))
	require.NoError(t, err)
	t.Cleanup(func() { syscall.CloseHandle(h) })
	require.False(t, hasEnded(t, h, 0))
	return h
}

func hasEnded(t *testing.T, h syscall.Handle, wait time.Duration) bool {
	t.Helper()
	event, err := syscall.WaitForSingleObject(h, uint32(wait.Milliseconds()))
	require.NoError(t, err)
	return event == syscall.WAIT_OBJECT_0
}

func TestJobEndsAGrandchildThatOutlivesItsParent(t *testing.T) {
	for _, options := range [][]string{nil, {"detached", "devnull"}} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			p := start(t, selfConfig(t, "wrapper", options...))
			grandchild := grandchildOf(t, p)
			drain(p)
			p.Stop(bound)
			require.True(t, hasEnded(t, grandchild, 0))
			require.Equal(t, "exit status 0", p.Exit().String())
		})
	}
}

func TestKillEndsTheWholeJob(t *testing.T) {
	p := start(t, selfConfig(t, "wrapper", "stay"))
	grandchild := grandchildOf(t, p)
	drain(p)
	p.Kill()
	waitFor(t, "Done", p.Done())
	require.True(t, hasEnded(t, grandchild, 0))
	require.True(t, p.Exit().Requested)
}

func TestChildDiesWithAHostThatIsKilled(t *testing.T) {
	host := start(t, selfConfig(t, "host"))
	child := grandchildOf(t, host)
	drain(host)
	// The host alone, not its job.
	self, err := os.FindProcess(host.Pid())
	require.NoError(t, err)
	require.NoError(t, self.Kill())
	require.NoError(t, self.Release())
	require.True(t, hasEnded(t, child, bound))
	waitFor(t, "Done", host.Done())
}

func TestChildThatIgnoresEOFGetsABreakOrIsEndedAtOnce(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-eof"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	began := time.Now()
	p.Stop(bound) // 2 s for EOF, 7 s for a break
	require.Less(t, time.Since(began), 6*time.Second)
	if proc.HasConsole() {
		require.Equal(t, "exit status 7", p.Exit().String())
	} else {
		require.Equal(t, "exit status 1", p.Exit().String())
	}
}

// launcher writes a batch file as npm makes them, which hands its arguments on
// to the test binary, and returns its directory.
func launcher(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(tempDir(t), "with space & more")
	require.NoError(t, os.Mkdir(dir, 0o700))
	text := "@ECHO off\r\n\"" + self + "\" %*\r\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	return dir
}

func TestBatchFileIsFoundAndGetsItsArgumentsUnharmed(t *testing.T) {
	dir := launcher(t, "srv.cmd")
	path, err := proc.LookPath("srv", "", []string{"Path=" + dir, "PATHEXT=.EXE;.CMD;.JS"})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "srv.cmd"), path)

	for _, args := range [][]string{
		{"plain", "", "with space", "a&b|c<d>e", "x^y", "!PATH!", "(p);,=", `tail\`, `\\host\x y\`, "ü", "-e", "*"},
		{`{"a": "b c"}`, `tail\`, `q\"`, `"`, "with space", `""`, `\\host\x y\`},
	} {
		cfg := selfConfig(t, "args", args...)
		cfg.Path = path
		p := start(t, cfg)
		out, err := io.ReadAll(p.Stdout)
		require.NoError(t, err)
		p.Drained()
		var got []string
		require.NoError(t, json.Unmarshal(out, &got), "%q", out)
		require.Equal(t, args, got)
		waitFor(t, "Done", p.Done())
		require.Equal(t, "exit status 0", p.Exit().String())
	}
}

func TestServerBehindABatchFileStops(t *testing.T) {
	cfg := selfConfig(t, "ignore-all")
	cfg.Path = filepath.Join(launcher(t, "srv.cmd"), "srv.cmd")
	p := start(t, cfg)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(time.Second)
	require.True(t, p.Exit().Requested)
}

func TestArgumentThatABatchFileCanNotGetIsRefused(t *testing.T) {
	for _, arg := range []string{"100%", "%PATH%", "two\r\nlines", "nul\x00"} {
		cfg := selfConfig(t, "args", "fine", arg)
		cfg.Path = filepath.Join(launcher(t, "srv.bat"), "srv.bat")
		_, err := proc.Start(cfg)
		var argErr *proc.BatchArgError
		require.ErrorAs(t, err, &argErr)
		require.Equal(t, 1, argErr.Index)
		require.NotContains(t, err.Error(), "PATH")
	}
	for _, args := range [][]string{
		{strings.Repeat("x", 9000)},
		{`" & exit 3 & "`},
		{`"`, "a&b"},
	} {
		cfg := selfConfig(t, "args", args...)
		cfg.Path = filepath.Join(launcher(t, "srv.bat"), "srv.bat")
		_, err := proc.Start(cfg)
		var argErr *proc.BatchArgError
		require.ErrorAs(t, err, &argErr)
	}
}

func TestManyStartsAndStopsLeaveHandlesWhereTheyWere(t *testing.T) {
	handles := func() uint32 {
		var n uint32
		kernel32 := syscall.NewLazyDLL("kernel32.dll")
		self, err := syscall.GetCurrentProcess()
		require.NoError(t, err)
		kernel32.NewProc("GetProcessHandleCount").Call(uintptr(self), uintptr(ptr(&n)))
		return n
	}
	var before uint32
	for i := range 40 {
		p := start(t, selfConfig(t, "echo"))
		drain(p)
		p.Stop(bound)
		if i == 10 {
			before = handles()
		}
	}
	require.Less(t, handles(), before+10)
}

func ptr(n *uint32) unsafe.Pointer { return unsafe.Pointer(n) }

package proc_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// readLine reads one line of the child's stdout and not a byte more, as the
// next line may have come with it.
func readLine(t testing.TB, p *proc.Process) string {
	t.Helper()
	require.NoError(t, p.Stdout.SetReadDeadline(time.Now().Add(bound)))
	var line []byte
	for one := make([]byte, 1); !bytes.HasSuffix(line, []byte("\n")); {
		_, err := io.ReadFull(p.Stdout, one)
		require.NoError(t, err, "after %q", line)
		line = append(line, one[0])
	}
	return string(line)
}

// drain reads stdout to its end in the background.
func drain(p *proc.Process) {
	_ = p.Stdout.SetReadDeadline(time.Time{})
	go func() {
		_, _ = io.Copy(io.Discard, p.Stdout)
		p.Drained()
	}()
}

// tempDir is t.TempDir without os.RemoveAll, which wine 8 can't do.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proc-test-*") //nolint:usetesting // see above
	require.NoError(t, err)
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		var all []string
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
			all = append(all, path)
			return nil
		})
		for _, path := range slices.Backward(all) {
			require.NoError(t, os.Remove(path))
		}
	})
	return dir
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

func TestSlowButCleanExitIsNotSignalled(t *testing.T) {
	p := start(t, selfConfig(t, "slow-exit", "400ms"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(bound)
	require.Equal(t, "exit status 0", p.Exit().String())
}

func TestOutputInFlightIsReadWhileStopping(t *testing.T) {
	const size = 8 << 20
	p := start(t, selfConfig(t, "flood", strconv.Itoa(size)))
	go p.Stop(bound)
	n, err := io.Copy(io.Discard, p.Stdout)
	p.Drained()
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	waitFor(t, "Done", p.Done())
	require.Equal(t, "exit status 0", p.Exit().String())
}

func TestLastOutputIsReadAfterTheExit(t *testing.T) {
	p := start(t, selfConfig(t, "show"))
	waitFor(t, "Exited", p.Exited())
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	require.Contains(t, string(out), modeEnv+"=show\n")
	p.Drained()
	waitFor(t, "Done", p.Done())
	require.False(t, p.Exit().Requested)
}

func TestOnExitIsToldOnceThatTheProgramHasExited(t *testing.T) {
	told := make(chan proc.Exit, 2)
	started := make(chan *proc.Process, 1)
	cfg := selfConfig(t, "slow-exit", "0s")
	cfg.OnExit = func() {
		p := <-started // it has long been started: it waits for EOF
		select {
		case <-p.Exited():
			told <- p.Exit()
		default:
			t.Error("OnExit came before Exited was closed")
		}
	}
	p := start(t, cfg)
	started <- p
	drain(p)
	p.Stop(bound)
	require.Equal(t, proc.Exit{Requested: true}, <-told)
	require.Empty(t, told)

	cfg.Path = filepath.Join(tempDir(t), "missing")
	cfg.OnExit = func() { t.Error("OnExit was told of a start that failed") }
	_, err := proc.Start(cfg)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAllCallersOfStopWait(t *testing.T) {
	p := start(t, selfConfig(t, "slow-exit", "200ms"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			p.Stop(bound)
			select {
			case <-p.Done():
			default:
				t.Error("Stop returned before Done")
			}
		})
	}
	wg.Wait()
	require.Equal(t, "exit status 0", p.Exit().String())
}

func TestShorterStopCutsALongerOneShort(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-all"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	long := make(chan struct{})
	go func() {
		defer close(long)
		p.Stop(time.Hour)
	}()
	p.Stop(0)
	waitFor(t, "the long Stop's return", long)
}

func TestStopAndKillAfterTheEndDoNothing(t *testing.T) {
	p := start(t, selfConfig(t, "exit", "3"))
	drain(p)
	waitFor(t, "Done", p.Done())
	p.Kill()
	p.Stop(time.Hour)
	require.Equal(t, proc.Exit{Code: 3}, p.Exit())
}

func TestStartRacingStopAndKillLeavesNothing(t *testing.T) {
	cfg := selfConfig(t, "echo")
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			p, err := proc.Start(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			p.Drained()
			if i%3 == 0 {
				p.Kill()
			}
			go p.Stop(bound)
			p.Stop(time.Duration(i) * time.Millisecond)
		})
	}
	wg.Wait()
}

func TestWriteToAChildThatDoesNotReadEndsByItsDeadline(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-eof"))
	require.NoError(t, p.Stdin.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := p.Stdin.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestStopInterruptsAWrite(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-all"))
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, err := p.Stdin.Write(make([]byte, 1<<20))
		assert.ErrorIs(t, err, os.ErrClosed)
	}()
	go p.Stop(bound)
	waitFor(t, "the end of the write", written)
	p.Kill()
}

func TestChildGetsItsOwnEnvironmentAndDirOnly(t *testing.T) {
	t.Setenv("PROC_TEST_SECRET", "of the host")
	dir := tempDir(t)
	cfg := selfConfig(t, "show")
	cfg.Dir = dir
	p := start(t, cfg)
	out, err := io.ReadAll(p.Stdout)
	p.Drained()
	require.NoError(t, err)
	require.Contains(t, string(out), "dir="+dir+"\n")
	require.NotContains(t, string(out), "PROC_TEST_SECRET")
}

func TestMissingDirIsNotTakenForAMissingCommand(t *testing.T) {
	for _, c := range []struct{ name, dir string }{
		{"missing", filepath.Join(tempDir(t), "missing")},
		{"a file", selfConfig(t, "echo").Path},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := selfConfig(t, "echo")
			cfg.Dir = c.dir
			_, err := proc.Start(cfg)
			var dirErr *proc.DirError
			require.ErrorAs(t, err, &dirErr)
			require.Equal(t, c.dir, dirErr.Dir)
		})
	}
}

package proc_test

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

// stopTime makes the phases of a Stop 250 ms, 200 ms and 50 ms.
const stopTime = 500 * time.Millisecond

func markedConfig(t *testing.T, mode string, args ...string) proc.Config {
	t.Helper()
	mark := leavesNothing(t)
	cfg := selfConfig(t, mode, args...)
	cfg.Env = append(cfg.Env, mark)
	return cfg
}

func grandchildOf(t *testing.T, p *proc.Process) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(readLine(t, p)))
	require.NoError(t, err)
	require.True(t, alive(pid))
	return pid
}

func TestStopKillsTheServerBehindAShell(t *testing.T) {
	cfg := markedConfig(t, "ignore-all")
	cfg.Args = []string{"-c", `"$0"; true`, cfg.Path}
	cfg.Path = "/bin/sh"
	p := start(t, cfg)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(stopTime)
}

func TestStopKillsAGrandchildThatOutlivesItsParent(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper"))
	grandchild := grandchildOf(t, p)
	drain(p)
	p.Stop(bound)
	require.False(t, alive(grandchild))
	require.Equal(t, "exit status 0", p.Exit().String())
}

func TestStopKillsAGrandchildThatLeftTheGroup(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper", "detached", "devnull"))
	grandchild := grandchildOf(t, p)
	drain(p)
	p.Stop(bound)
	require.False(t, alive(grandchild))
	require.Equal(t, "exit status 0", p.Exit().String())
}

func TestStopKillsAGrandchildThatLeftTheGroupAndItsEnvironment(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper", "detached", "noenv", "devnull", "stay"))
	grandchild := grandchildOf(t, p)
	drain(p)
	p.Stop(stopTime)
	require.False(t, alive(grandchild))
}

func shell(t *testing.T, script string) *proc.Process {
	t.Helper()
	cfg := markedConfig(t, "")
	cfg.Path, cfg.Args = "/bin/sh", []string{"-c", script}
	p := start(t, cfg)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	return p
}

func TestStopKillsADaemonWhoseParentsWereGoneLongBefore(t *testing.T) {
	shell(t, `(setsid sleep 60 </dev/null >/dev/null 2>&1 &); echo ready; read line`).Stop(bound)
}

func TestStopKillsADaemonOfAProgramThatIgnoresSIGCHLD(t *testing.T) {
	p := start(t, markedConfig(t, "daemon-unseen"))
	daemon := grandchildOf(t, p)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(bound)
	require.False(t, alive(daemon))
}

func TestStopAfterTheExitKillsADaemon(t *testing.T) {
	cfg := markedConfig(t, "")
	cfg.Path, cfg.Args = "/bin/sh", []string{"-c", `setsid sleep 60 </dev/null >/dev/null 2>&1 &`}
	p := start(t, cfg)
	waitFor(t, "Exited", p.Exited())
	p.Stop(bound)
}

func TestStopKillsADaemonThatIsStartedOnceItHasBegun(t *testing.T) {
	shell(t, `echo ready; read line; setsid sleep 60 </dev/null >/dev/null 2>&1 &`).Stop(bound)
}

func TestStopKillsAChildThatIsStartedOnceItHasBegun(t *testing.T) {
	shell(t, `echo ready; read line; env -i sleep 60 </dev/null >/dev/null 2>&1 &`).Stop(bound)
}

func TestTheEndOfAProgramThatStartedNothingTakesNoWalkOverAllProcesses(t *testing.T) {
	cfg := markedConfig(t, "")
	cfg.Path = "/bin/cat"
	// When much else is started meanwhile on the host, there is a walk after all.
	for range 20 {
		p := start(t, cfg)
		p.Drained()
		release := proc.HoldSweeps()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			p.Stop(bound)
		}()
		eventually(t, "Stop ends, or walks", func() bool {
			select {
			case <-stopped:
				return true
			default:
				return proc.SweepsWaiting() > 0
			}
		})
		walks := release()
		waitFor(t, "the end of Stop", stopped)
		if walks == 0 {
			return
		}
	}
	t.Error("there was a walk each time")
}

func TestKillTakesADaemonAlong(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper", "detached", "stay"))
	grandchild := grandchildOf(t, p)
	drain(p)
	p.Kill()
	waitFor(t, "Done", p.Done())
	require.False(t, alive(grandchild))
	require.Equal(t, proc.Exit{Code: -1, Signal: "killed", Requested: true}, p.Exit())
}

func TestDeathOfAWrapperIsSeenWhileItsGrandchildHoldsThePipes(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper", "detached", "stay"))
	grandchild := grandchildOf(t, p)
	drain(p)
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	waitFor(t, "Exited", p.Exited())
	require.True(t, alive(grandchild), "Exited waited for the grandchild")
	require.Equal(t, proc.Exit{Code: -1, Signal: "killed"}, p.Exit())
	waitFor(t, "Done", p.Done())
	require.False(t, alive(grandchild))
}

func TestOutputOfAGrandchildIsReadForAWhileAfterTheExit(t *testing.T) {
	t.Cleanup(proc.SetDrainTime(bound)) // on a busy machine 100 ms may pass before the grandchild gets to run
	cfg := markedConfig(t, "")
	cfg.Path, cfg.Args = "/bin/sh", []string{"-c", "(sleep 0.02; echo late) &"}
	p := start(t, cfg)
	waitFor(t, "Exited", p.Exited())
	out, err := io.ReadAll(p.Stdout)
	p.Drained()
	require.NoError(t, err)
	require.Equal(t, "late\n", string(out))
}

func TestStoppedChildIsEndedBySIGTERM(t *testing.T) {
	p := start(t, markedConfig(t, "stopped"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	eventually(t, "the child stops", func() bool { return statFields(p.Pid())[0] == "T" })
	p.Stop(stopTime)
	require.Equal(t, "signal: terminated", p.Exit().String())
}

func TestExitIsLearntWithoutAPidfd(t *testing.T) {
	p, err := proc.StartWithoutPidfd(markedConfig(t, "exit", "3"))
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(0) })
	drain(p)
	waitFor(t, "Done", p.Done())
	require.Equal(t, proc.Exit{Code: 3}, p.Exit())
}

func TestChildDiesWithAHostThatIsKilled(t *testing.T) {
	host := start(t, markedConfig(t, "host"))
	child := grandchildOf(t, host)
	drain(host)
	// Not through the group, and not swept: the child is in a group of its own
	// and has a marker of its own.
	require.NoError(t, syscall.Kill(host.Pid(), syscall.SIGKILL))
	diesWithItsHost(t, child)
	waitFor(t, "Done", host.Done())
}

func TestChildOutlivesTheThreadThatStartedIt(t *testing.T) {
	host := start(t, markedConfig(t, "host-thread-ends"))
	require.Equal(t, "stopped: exit status 0\n", readLine(t, host))
}

func TestOrphansAreReapedByAHostThatInheritsThem(t *testing.T) {
	for _, option := range []string{"", "detached"} {
		t.Run(option, func(t *testing.T) {
			host := start(t, markedConfig(t, "host-subreaper", option))
			require.Equal(t, "children left: 0\n", readLine(t, host))
		})
	}
}

func TestHostThatIgnoresSIGCHLDLeavesNothing(t *testing.T) {
	host := start(t, markedConfig(t, "host-ignores-sigchld"))
	require.Equal(t, "alive: false exit status unknown\n", readLine(t, host))
}

func TestIdleProcessHasAtMostOneGoroutineFourFdsAndNoThread(t *testing.T) {
	cfg := markedConfig(t, "echo")
	const n = 50
	first := start(t, cfg) // whose pool of threads is not counted
	fds, goroutines, before := len(openFds(t)), runtime.NumGoroutine(), threads(t)
	for range n {
		start(t, cfg).Drained()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+n)
	require.Len(t, openFds(t), fds+4*n)
	require.Less(t, threads(t), before+10)
	first.Drained()
}

func TestManyStartsAndStopsLeaveThreadsWhereTheyWere(t *testing.T) {
	cfg := markedConfig(t, "echo")
	cfg.Path = "/bin/cat" // starts in no time, unlike a test binary built with -race
	for i, before := 0, 0; i < 200; i++ {
		p := start(t, cfg)
		p.Drained()
		p.Stop(bound)
		if i == 20 {
			before = threads(t)
		}
		if i == 199 {
			require.Less(t, threads(t), before+5)
		}
	}
}

func TestManyFailedStartsLeaveNothing(t *testing.T) {
	cfg := markedConfig(t, "echo")
	cfg.Path = "/nowhere/at/all"
	before := threads(t)
	for range 200 {
		_, err := proc.Start(cfg)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.Less(t, threads(t), before+5)
}

func TestTreesThatEndTogetherShareOneWalk(t *testing.T) {
	cfg := markedConfig(t, "echo")
	const n = 8
	var all []*proc.Process
	for range n {
		all = append(all, start(t, cfg))
	}
	release := proc.HoldSweeps()
	for _, p := range all {
		p.Drained()
		p.Kill()
	}
	eventually(t, "all wait for one walk", func() bool { return proc.SweepsWaiting() == n })
	require.Equal(t, n, release())
	for _, p := range all {
		waitFor(t, "Done", p.Done())
	}
}

func TestEnvironmentOfAChildIsWhatConfigSaysAndTheMarker(t *testing.T) {
	cfg := markedConfig(t, "show")
	cfg.Env = append(cfg.Env, proc.TreeEnv+"=of an outer host", "A=b")
	p := start(t, cfg)
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	p.Drained()
	var env []string
	var marker string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, proc.TreeEnv+"="):
			require.Empty(t, marker, "two markers")
			marker = line
		case !strings.HasPrefix(line, "dir="):
			env = append(env, line)
		}
	}
	require.Equal(t, append(cfg.Env[:3:3], "A=b"), env)
	require.NotContains(t, marker, "outer")
	require.Len(t, marker, len(proc.TreeEnv)+1+32)
}

func TestEmptyEnvironmentStaysEmptyButForTheMarker(t *testing.T) {
	leavesNothing(t)
	for _, cfg := range []proc.Config{
		{},
		{Env: []string{"A=b"}, Prepare: func(cmd *exec.Cmd) error { cmd.Env = nil; return nil }},
	} {
		cfg.Path = "/usr/bin/env"
		p := start(t, cfg)
		out, err := io.ReadAll(p.Stdout)
		require.NoError(t, err)
		p.Drained()
		require.Regexp(t, "^"+proc.TreeEnv+"=[0-9a-f]{32}\n$", string(out))
	}
}

func TestWhatATreeNeedsWinsOverPrepare(t *testing.T) {
	cfg := markedConfig(t, "echo")
	pidfd := -1
	cfg.Prepare = func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Pdeathsig: syscall.SIGUSR1, PidFD: &pidfd}
		return nil
	}
	p := start(t, cfg)
	p.Drained()
	pid := strconv.Itoa(p.Pid())
	require.Equal(t, []string{pid, pid}, statFields(p.Pid())[2:4], "group, session")
	require.Equal(t, -1, pidfd)
	require.NoError(t, p.Stop(bound))
}

// BenchmarkStartStop is what a process costs that does nothing, from its start
// to its end.
func BenchmarkStartStop(b *testing.B) {
	cfg := proc.Config{Path: "/bin/cat"}
	var starts time.Duration
	for b.Loop() {
		began := time.Now()
		p, err := proc.Start(cfg)
		starts += time.Since(began)
		require.NoError(b, err)
		p.Drained()
		p.Stop(bound)
	}
	b.ReportMetric(float64(starts.Nanoseconds())/float64(b.N), "start-ns/op")
}

// BenchmarkExecStartWait is the same with os/exec, which looks after one
// process and no tree.
func BenchmarkExecStartWait(b *testing.B) {
	var starts time.Duration
	for b.Loop() {
		began := time.Now()
		cmd := exec.Command("/bin/cat")
		cmd.Env = []string{}
		stdin, err := cmd.StdinPipe()
		require.NoError(b, err)
		_, err = cmd.StdoutPipe()
		require.NoError(b, err)
		_, err = cmd.StderrPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		starts += time.Since(began)
		require.NoError(b, stdin.Close())
		require.NoError(b, cmd.Wait())
	}
	b.ReportMetric(float64(starts.Nanoseconds())/float64(b.N), "start-ns/op")
}

package proc_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

// nobody is a user who may signal nobody else's processes.
const nobody = 65534

// outcome is what a host reports of a Stop of its own.
type outcome struct {
	Pid        int
	Took       time.Duration
	Pids       []int
	Permission bool
	Text       string
}

func init() {
	// A program that nobody may signal but root. Its input may end.
	modes["another-user"] = func([]string) {
		must(syscall.Setuid(0))
		modes["ignore-all"](nil)
	}

	// A host that can't signal its child. Prints what Stop says, whether Done is
	// closed, and waits for the child's end.
	modes["host-of-another-user"] = func(args []string) {
		p := hostStart(args[0], "another-user")
		_, err := bufio.NewReader(p.Stdout).ReadString('\n')
		must(err)
		began := time.Now()
		err = p.Stop(200 * time.Millisecond)
		o := outcome{Pid: p.Pid(), Took: time.Since(began), Permission: errors.Is(err, fs.ErrPermission)}
		var left *proc.LeftError
		if errors.As(err, &left) && left == p.Err() {
			<-p.Done()
			o.Pids, o.Text = left.Pids, left.Error()
		}
		must(json.NewEncoder(os.Stdout).Encode(o))
		<-p.Exited()
		for alive(p.Pid()) || len(childrenOf(os.Getpid())) > 0 {
			time.Sleep(time.Millisecond)
		}
		must(json.NewEncoder(os.Stdout).Encode("reaped"))
	}

	// A host that has no file descriptor left when it stops a wrapper. Prints the
	// pid of the wrapper's daemon and what Stop says.
	modes["host-without-descriptors"] = func([]string) {
		p := hostStart(os.Args[0], "wrapper", "detached", "noenv", "devnull")
		daemon := readPid(p)
		p.Drained()
		must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: 4096}))
		err := p.Stop(bound)
		must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
		must(json.NewEncoder(os.Stdout).Encode(outcome{Pid: daemon, Text: fmt.Sprint(err)}))
	}

	// Reports its own and its child's ignored signals once it ignores some, and
	// whether it still does itself.
	modes["host-ignores"] = func(args []string) {
		if len(args) > 0 {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGUSR1)
		}
		before := ignoredBy(os.Getpid())
		p := hostStart(os.Args[0], "echo")
		child := ignoredBy(p.Pid())
		p.Drained()
		must(p.Stop(bound))
		must(json.NewEncoder(os.Stdout).Encode([]uint64{before, child, ignoredBy(os.Getpid())}))
	}
}

// ignoredBy returns the mask of the signals that a process ignores.
func ignoredBy(pid int) uint64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	must(err)
	_, after, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, _, _ := strings.Cut(after, "\n")
	ignored, err := strconv.ParseUint(mask, 16, 64)
	must(err)
	return ignored
}

func bits(signals ...syscall.Signal) (mask uint64) {
	for _, sig := range signals {
		mask |= 1 << (sig - 1)
	}
	return mask
}

// copiesOfSelf copies the test binary to where everybody may run it, and a second time
// to run as root whoever starts it.
func copiesOfSelf(t *testing.T) (plain, setuid string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start programs as other users")
	}
	data, err := os.ReadFile(selfConfig(t, "").Path)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "proc-setuid-*") //nolint:usetesting // others can't enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	plain, setuid = filepath.Join(dir, "plain"), filepath.Join(dir, "setuid")
	for path, mode := range map[string]fs.FileMode{plain: 0o755, setuid: 0o755 | fs.ModeSetuid} {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	return plain, setuid
}

func TestStopReturnsThoughTheProgramCanNotBeSignalledAndReapsItInTheEnd(t *testing.T) {
	plain, setuid := copiesOfSelf(t)
	cfg := markedConfig(t, "host-of-another-user", setuid)
	cfg.Path, cfg.Dir, cfg.Prepare = plain, "/", asNobody
	host := start(t, cfg)
	var o outcome
	require.NoError(t, json.Unmarshal([]byte(readLine(t, host)), &o))
	require.Less(t, o.Took, bound)
	require.True(t, o.Permission, "it says why")
	require.Equal(t, []int{o.Pid}, o.Pids)
	require.Equal(t, "process "+strconv.Itoa(o.Pid)+" of the server could not be ended: operation not permitted", o.Text)
	require.True(t, alive(o.Pid))
	require.NoError(t, syscall.Kill(o.Pid, syscall.SIGKILL))
	require.Equal(t, "\"reaped\"\n", readLine(t, host))
	drain(host)
	require.NoError(t, host.Stop(bound))
}

func TestSignalsThatTheHostIgnoresHaveTheirDefaultActionInTheChild(t *testing.T) {
	deadly := bits(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGALRM, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	for _, c := range []struct {
		name, trap string
		args       string
	}{
		{"from its start on", `trap "" HUP INT QUIT PIPE ALRM TERM USR1 USR2; exec "$0"`, ""},
		{"by its own choice", `exec "$0" "$1"`, "ignore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := markedConfig(t, "host-ignores")
			cfg.Args = []string{"-c", c.trap, cfg.Path, c.args}
			if c.args == "" {
				cfg.Args = cfg.Args[:3]
			}
			cfg.Path = "/bin/sh"
			host := start(t, cfg)
			var masks []uint64
			require.NoError(t, json.Unmarshal([]byte(readLine(t, host)), &masks))
			require.NotZero(t, masks[0]&deadly, "the host ignores some")
			require.Zero(t, masks[1]&deadly)
			require.Equal(t, masks[0], masks[2], "the host ignores what it has ignored before")
			drain(host)
			require.NoError(t, host.Stop(bound))
		})
	}
}

func TestProgramHasASessionOfItsOwnAndNoTerminal(t *testing.T) {
	p := shell(t, `if (: </dev/tty) 2>/dev/null; then echo a terminal; else echo ready; fi; read line`)
	fields := statFields(p.Pid())
	pid := strconv.Itoa(p.Pid())
	require.Equal(t, []string{pid, pid, "0"}, fields[2:5], "group, session, terminal")
	require.NoError(t, p.Stop(bound))
}

func TestStopKillsAJobThatLostItsParentAndItsEnvironment(t *testing.T) {
	// As an interactive shell starts them: a group of its own in the leader's session.
	p := start(t, markedConfig(t, "wrapper", "job", "noenv", "devnull"))
	job := grandchildOf(t, p)
	drain(p)
	require.NoError(t, p.Stop(bound))
	require.False(t, alive(job))
}

func TestStopKillsADaemonThatExecsAllTheTime(t *testing.T) {
	// In the middle of an execve a process shows no environment, and it wasn't found.
	again := writeFile(t, filepath.Join(t.TempDir(), "again"), "exec /bin/sh \"$0\"\n", 0o700)
	for range 20 {
		cfg := markedConfig(t, "")
		cfg.Path = "/bin/sh"
		cfg.Args = []string{"-c", `(setsid /bin/sh "$0" </dev/null >/dev/null 2>&1 &); echo ready; read line`, again}
		p := start(t, cfg)
		require.Equal(t, "ready\n", readLine(t, p))
		drain(p)
		require.NoError(t, p.Stop(bound))
	}
}

func TestStopSaysThatAProcessMayBeLeftWhereNotAllCouldBeLookedAt(t *testing.T) {
	host := start(t, markedConfig(t, "host-without-descriptors"))
	var o outcome
	require.NoError(t, json.Unmarshal([]byte(readLine(t, host)), &o))
	require.Equal(t, "processes of the server may be left: not all of the host's processes could be looked at", o.Text)
	drain(host)
	require.True(t, alive(o.Pid))
	require.NoError(t, syscall.Kill(o.Pid, syscall.SIGKILL))
	require.NoError(t, host.Stop(bound))
}

func TestWalkThatIsCutSaysSo(t *testing.T) {
	p := start(t, markedConfig(t, "wrapper", "stay"))
	grandchildOf(t, p)
	drain(p)
	members, whole := proc.WalkUntil(p, time.Now().Add(bound))
	require.Equal(t, 1, members)
	require.True(t, whole)
	_, whole = proc.WalkUntil(p, time.Now())
	require.False(t, whole)
	require.NoError(t, p.Stop(0))
}

func TestStopKillsTheGroupOfAProgramWhoseChildrenTheKernelReaps(t *testing.T) {
	p := start(t, markedConfig(t, "worker-unseen"))
	worker := grandchildOf(t, p)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	require.NoError(t, p.Stop(bound))
	eventually(t, "the worker's end", func() bool { return !alive(worker) })
}

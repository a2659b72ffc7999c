package proc

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// TreeEnv is the environment variable that marks every process of a tree on
// Linux. Its value is random, made for one tree, and means nothing elsewhere.
const TreeEnv = "MCPPOOL_TREE"

// killTime bounds the wait for killed processes to be gone: one that hangs in
// the kernel must not keep the host waiting.
const killTime = time.Second

// osTree is what Linux knows of a tree.
type osTree struct {
	pidfd  *os.File // nil where the kernel has none
	marker string   // "MCPPOOL_TREE=<id>"

	// The fields below are protected by tree.mu.
	stolen     bool     // somebody else reaped the leader: its pid pins nothing
	remembered []member // found before the group was signalled
	looked     bool     // look was called
	seen       glimpse
}

func (t *tree) fork(path string, argv []string, attr *syscall.ProcAttr) error {
	var id [16]byte
	rand.Read(id[:])
	t.marker = TreeEnv + "=" + hex.EncodeToString(id[:])
	attr.Env = slices.DeleteFunc(attr.Env, func(entry string) bool {
		return strings.HasPrefix(entry, TreeEnv+"=")
	})
	attr.Env = append(attr.Env, t.marker)

	pidfd := -1
	attr.Sys.PidFD = &pidfd
	attr.Sys.Pdeathsig = syscall.SIGKILL

	var err error
	forks.acquire()
	forks.run(func() { t.pid, _, err = syscall.StartProcess(path, argv, attr) })
	if err != nil {
		forks.release()
		return err
	}
	if pidfd >= 0 {
		_ = syscall.SetNonblock(pidfd, true) // what has NewFile put it into the netpoller
		t.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return nil
}

// awaitExit waits for the leader's exit and leaves its zombie for reap.
func (t *tree) awaitExit() Exit {
	var exit Exit
	exited := false
	if t.pidfd != nil {
		if conn, err := t.pidfd.SyscallConn(); err == nil {
			// An error tells that a pidfd can't be polled, as before Linux 5.3.
			_ = conn.Read(func(uintptr) bool {
				exit, exited = t.peek(syscall.WNOHANG)
				return exited
			})
		}
	}
	for !exited {
		exit, exited = t.peek(0)
	}
	return exit
}

// siginfo is the kernel's siginfo_t as waitid fills it.
type siginfo struct {
	Signo, Errno, Code int32
	_                  [0]uintptr // the union that follows is aligned like a pointer
	Pid, Uid, Status   int32
	_                  [128]byte
}

const (
	pPid      = 1 // P_PID
	cldExited = 1 // CLD_EXITED
	cldDumped = 3 // CLD_DUMPED
)

// peek reports whether the leader has exited and how, without reaping it.
func (t *tree) peek(options uintptr) (Exit, bool) {
	for {
		var info siginfo
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(t.pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT|options, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			// ECHILD: the host ignores SIGCHLD or waits for any child.
			t.mu.Lock()
			t.stolen, t.reaped = true, true
			t.mu.Unlock()
			return Exit{Code: -1}, true
		case info.Pid == 0:
			return Exit{}, false
		case info.Code == cldExited:
			return Exit{Code: int(info.Status)}, true
		}
		return Exit{
			Code:     -1,
			Signal:   syscall.Signal(info.Status).String(),
			CoreDump: info.Code == cldDumped,
		}, true
	}
}

// finish ends what the leader left behind and reaps it.
func (t *tree) finish() {
	if !t.leftNobody() {
		t.killMembers()
	}
	t.reap()
	if t.pidfd != nil {
		t.pidfd.Close()
	}
	forks.release()
}

// killMembers kills what there is beside the leader, and waits until it is gone.
func (t *tree) killMembers() {
	deadline := time.Now().Add(killTime)
	t.mu.Lock()
	members := t.remembered
	t.mu.Unlock()
	for pause := time.Millisecond; ; pause *= 2 {
		// Look before the kill: a parent that is gone no longer leads to its children.
		alive := t.sweep(&members)
		t.kill()
		if alive == 0 || !time.Now().Before(deadline) {
			break
		}
		time.Sleep(min(pause, 50*time.Millisecond))
	}
	for _, m := range members {
		m.reapOrphan()
	}
}

// remember notes who has left the group while their parents can still tell.
func (t *tree) remember() {
	found := sweeps.find(t.want(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remembered = found
}

// sweep kills the living members of the tree that it finds and returns how
// many there were. Members not in known are added to it.
func (t *tree) sweep(known *[]member) int {
	alive := 0
	for _, m := range sweeps.find(t.want(*known)) {
		if !slices.ContainsFunc(*known, m.same) {
			*known = append(*known, m)
		}
		if m.alive() {
			alive++
			m.kill()
		}
	}
	return alive
}

func (t *tree) want(known []member) wanted {
	w := wanted{leader: t.pid, marker: t.marker, known: known}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.noGroup = t.stolen
	return w
}

// reap collects the leader, which has exited.
func (t *tree) reap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.reaped {
		_, err := syscall.Wait4(t.pid, nil, 0, nil)
		t.reaped = err != syscall.EINTR
	}
}

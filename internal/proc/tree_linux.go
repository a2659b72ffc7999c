package proc

import (
	"cmp"
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
			// An error says that a pidfd can't be polled, as before Linux 5.3.
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

// hangs reports that the kernel doesn't let the leader go, though it was killed: it
// waits for a device or a file system.
func (t *tree) hangs() bool {
	m, err := readMember(t.pid)
	return err == nil && m.state == 'D'
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
			t.reaped = true // by somebody else
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
func (t *tree) finish() error {
	var left error
	if !t.leftNobody() {
		left = t.killMembers()
	}
	// Whoever was overlooked and is in the group ends with it at the latest: once
	// the leader is reaped the group can't be signalled any more.
	_ = t.kill()
	t.reap()
	if t.pidfd != nil {
		t.pidfd.Close()
	}
	forks.release()
	return left
}

// killMembers kills what there is beside the leader, and waits until it is gone. What
// isn't, or may not be, is a *LeftError.
func (t *tree) killMembers() error {
	deadline := time.Now().Add(killTime)
	t.mu.Lock()
	members := t.remembered
	t.mu.Unlock()
	var (
		alive int
		whole bool
	)
	for pause := time.Millisecond; ; pause *= 2 {
		// Look before the kill: a parent that is gone no longer leads to its children.
		alive, whole = t.sweep(&members)
		_ = t.kill()
		if alive == 0 && whole || !time.Now().Before(deadline) {
			break
		}
		time.Sleep(min(pause, 50*time.Millisecond))
	}
	left := &LeftError{}
	for _, m := range members {
		m.reapOrphan()
		if m.lives() {
			left.Pids = append(left.Pids, m.pid)
			left.Err = cmp.Or(left.Err, m.kill())
		}
	}
	switch {
	case len(left.Pids) > 0:
		return left
	case !whole:
		left.Err = errUnseen
		return left
	}
	return nil
}

// remember notes who has left the group while their parents can still tell.
func (t *tree) remember() {
	found, _ := sweeps.find(t.want(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remembered = found[0]
}

// sweep kills the living members of the tree that it finds. It returns how many there
// were, and whether it has looked at all that there is. Members not in known are added
// to it.
func (t *tree) sweep(known *[]member) (alive int, whole bool) {
	found, whole := sweeps.find(t.want(*known))
	for _, m := range found[0] {
		if !slices.ContainsFunc(*known, m.same) {
			*known = append(*known, m)
		}
		if m.alive() {
			alive++
			_ = m.kill()
		}
	}
	return alive, whole
}

func (t *tree) want(known []member) wanted {
	w := wanted{leader: t.pid, marker: t.marker, known: known}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.noGroup = t.reaped
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

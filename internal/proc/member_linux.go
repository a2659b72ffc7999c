package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// member is a process of a tree other than its leader, as /proc showed it. The
// pid and the start time together name one process for good.
type member struct {
	pid, ppid, pgrp int
	state           byte
	exiting         bool // also its first thread alone
	threads         int
	childFaults     bool   // children that it waited for had page faults, as all have
	start           uint64 // clock ticks since boot
}

// alive reports whether anything of m runs: the first thread of a process that
// was killed may be a zombie while others are still on their way out, and with
// them its files.
func (m member) alive() bool { return m.state != 'Z' && m.state != 'X' || m.threads > 1 }

func (m member) same(other member) bool { return m.pid == other.pid && m.start == other.start }

const pfExiting = 0x4 // PF_EXITING

// readMember reads /proc/<pid>/stat.
func readMember(pid int) (member, bool) {
	var buf [1024]byte
	data := readProc(pid, "stat", buf[:])
	// The second field is the program's name in parentheses, which may hold anything.
	_, rest, ok := cutLast(data, ')')
	if !ok {
		return member{}, false
	}
	const fields = 20 // from the third, the state, to the 22nd, the start time
	f := bytes.Fields(rest)
	if len(f) < fields {
		return member{}, false
	}
	m := member{pid: pid, state: f[0][0]}
	m.ppid, _ = strconv.Atoi(string(f[1]))
	m.pgrp, _ = strconv.Atoi(string(f[2]))
	flags, _ := strconv.ParseUint(string(f[6]), 10, 64)
	m.exiting = flags&pfExiting != 0
	m.childFaults = string(f[8]) != "0"
	m.threads, _ = strconv.Atoi(string(f[17]))
	m.start, _ = strconv.ParseUint(string(f[fields-1]), 10, 64)
	return m, true
}

func cutLast(data []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(data, sep)
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+1:], true
}

// readProc returns what one read(2) into buf gives of /proc/<pid>/<name>:
// everything, unless that is longer. It is empty if the process is gone or not
// the host's to look at.
func readProc(pid int, name string, buf []byte) []byte {
	return readFile("/proc/"+strconv.Itoa(pid)+"/"+name, buf)
}

func readFile(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	for {
		n, err := syscall.Read(fd, buf)
		if err != syscall.EINTR {
			return buf[:max(n, 0)]
		}
	}
}

const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// kill kills m, and never a process that was given its pid since.
func (m member) kill() {
	pidfd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(m.pid), 0, 0)
	if errno == 0 {
		defer syscall.Close(int(pidfd))
	}
	// The pidfd holds whoever has the pid now; if that is m, it is m for good.
	if !m.still() {
		return
	}
	if errno == 0 {
		_, _, errno = syscall.Syscall6(sysPidfdSendSignal, pidfd, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		if errno == 0 || errno == syscall.ESRCH {
			return
		}
	}
	_ = syscall.Kill(m.pid, syscall.SIGKILL) // no pidfds, or a sandbox that denies them
}

// still reports whether m's pid is m's still.
func (m member) still() bool {
	now, ok := readMember(m.pid)
	return ok && now.same(m)
}

// reapOrphan reaps m if it is a zombie that the host has inherited. A host that
// is a container's first process, or a subreaper, gets those that lost their
// parents, and nobody else would reap them.
func (m member) reapOrphan() {
	now, ok := readMember(m.pid)
	if ok && now.same(m) && !now.alive() && now.ppid == os.Getpid() {
		_, _ = syscall.Wait4(m.pid, nil, syscall.WNOHANG, nil)
	}
}

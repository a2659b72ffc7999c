package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// member is a process of a tree other than its leader, as /proc showed it.
type member struct {
	pid, ppid, pgrp, session int

	state       byte
	exiting     bool // also its first thread alone
	ofKernel    bool // a thread of the kernel's, which has no memory of its own
	threads     int
	childFaults bool   // children that it waited for had page faults, as all have
	start       uint64 // clock ticks since boot

	// Where its environment ends in its memory; zero in the middle of an execve,
	// and if it isn't the host's to know.
	envStart, envEnd uint64
}

// alive reports whether anything of m runs: the first thread of a process that
// was killed may be a zombie while others are still on their way out, and with
// them its files.
func (m member) alive() bool { return m.state != 'Z' && m.state != 'X' || m.threads > 1 }

func (m member) same(other member) bool { return m.ident() == other.ident() }

// ident names one process for good.
type ident struct {
	pid   int
	start uint64
}

func (m member) ident() ident { return ident{m.pid, m.start} }

const (
	pfExiting = 0x4      // PF_EXITING
	pfKthread = 0x200000 // PF_KTHREAD
)

// errFormat says that the kernel shows a process in another way than Linux does.
var errFormat = errors.New("unknown format of /proc/<pid>/stat")

// readMember reads /proc/<pid>/stat.
func readMember(pid int) (member, error) {
	var buf [1024]byte
	data, err := readProc(pid, "stat", buf[:])
	if err != nil {
		return member{}, err
	}
	// The second field is the program's name in parentheses, which may hold anything.
	_, rest, ok := cutLast(data, ')')
	const fields = 20 // from the third, the state, to the 22nd, the start time
	f := bytes.Fields(rest)
	if !ok || len(f) < fields {
		return member{}, errFormat
	}
	m := member{pid: pid, state: f[0][0]}
	m.ppid, _ = strconv.Atoi(string(f[1]))
	m.pgrp, _ = strconv.Atoi(string(f[2]))
	m.session, _ = strconv.Atoi(string(f[3]))
	flags, _ := strconv.ParseUint(string(f[6]), 10, 64)
	m.exiting, m.ofKernel = flags&pfExiting != 0, flags&pfKthread != 0
	m.childFaults = string(f[8]) != "0"
	m.threads, _ = strconv.Atoi(string(f[17]))
	m.start, _ = strconv.ParseUint(string(f[fields-1]), 10, 64)
	if len(f) > 48 { // the 50th and 51st field, since Linux 3.5
		m.envStart, _ = strconv.ParseUint(string(f[47]), 10, 64)
		m.envEnd, _ = strconv.ParseUint(string(f[48]), 10, 64)
	}
	return m, nil
}

func cutLast(data []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(data, sep)
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+1:], true
}

// readProc returns what one read(2) into buf gives of /proc/<pid>/<name>:
// everything, unless that is longer.
func readProc(pid int, name string, buf []byte) ([]byte, error) {
	return readFile("/proc/"+strconv.Itoa(pid)+"/"+name, buf)
}

func readFile(path string, buf []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	for {
		n, err := syscall.Read(fd, buf)
		if err != syscall.EINTR {
			return buf[:max(n, 0)], err
		}
	}
}

// scarce reports whether err is about what the host lacks, rather than about what it
// looked at.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EINTR)
}

const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// kill kills m, and never a process that was given its pid since. The error is why m
// can't be killed.
func (m member) kill() error {
	pidfd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(m.pid), 0, 0)
	if errno == 0 {
		defer syscall.Close(int(pidfd))
	}
	// The pidfd holds whoever has the pid now; if that is m, it is m for good.
	if !m.still() {
		return nil
	}
	if errno == 0 {
		_, _, errno = syscall.Syscall6(sysPidfdSendSignal, pidfd, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		if errno == 0 || errno == syscall.ESRCH {
			return nil
		}
	}
	err := syscall.Kill(m.pid, syscall.SIGKILL) // no pidfds, or a sandbox that denies them
	if err == syscall.ESRCH {
		return nil
	}
	return err
}

// still reports whether m's pid is m's still.
func (m member) still() bool {
	now, err := readMember(m.pid)
	return err == nil && now.same(m)
}

// lives reports whether m is there still, and no zombie.
func (m member) lives() bool {
	now, err := readMember(m.pid)
	return err == nil && now.same(m) && now.alive()
}

// reapOrphan reaps m if it is a zombie that the host has inherited. A host that
// is a container's first process, or a subreaper, gets those that lost their
// parents, and nobody else would reap them.
func (m member) reapOrphan() {
	now, err := readMember(m.pid)
	if err == nil && now.same(m) && !now.alive() && now.ppid == os.Getpid() {
		_, _ = syscall.Wait4(m.pid, nil, syscall.WNOHANG, nil)
	}
}

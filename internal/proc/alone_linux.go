package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Most programs start nothing, and a walk over all processes of the host to find
// that out costs more the larger the host. So Stop notes first whether the
// leader has a child. If it has none, and has never waited for one, whatever it
// may have left was started since; and pids are given out in ascending order, so
// these are few to look at.

// maxLook is how many pids are looked at one by one rather than by a walk.
const maxLook = 64

// glimpse is what was seen of a tree when its Stop began.
type glimpse struct {
	alone   bool // the leader had no child, and the kernel notes those that it waited for
	lastPid int  // the last pid that was given out before that was looked up
}

// look takes the glimpse.
func (t *tree) look() {
	t.mu.Lock()
	first := !t.looked && !t.reaped
	t.looked = true
	t.mu.Unlock()
	if !first {
		return
	}
	last, ok := lastPid()
	if !ok || !waits(t.pid) || !childless(t.pid) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = glimpse{alone: true, lastPid: last}
}

// leftNobody reports that the leader, which has exited, is the last of its tree
// for sure. If it is false, that isn't known.
func (t *tree) leftNobody() bool {
	t.mu.Lock()
	sure, seen := t.seen.alone && !t.reaped && len(t.remembered) == 0, t.seen
	t.mu.Unlock()
	if !sure {
		return false
	}
	// Every process has page faults: none of children means no child that ended.
	leader, err := readMember(t.pid)
	if err != nil || leader.childFaults {
		return false
	}
	last, ok := lastPid()
	if !ok || last < seen.lastPid || last > seen.lastPid+maxLook {
		return false // pids have begun anew, or there are many
	}
	s := newSweep()
	s.add(t.want(nil))
	for pid := seen.lastPid + 1; ; pid++ {
		if pid > last {
			// Whoever was looked at may have started another one, and ended.
			now, ok := lastPid()
			if !ok || now < last || now > seen.lastPid+maxLook {
				return false
			}
			if now == last {
				return true
			}
			last = now
		}
		if !s.isNone(pid) {
			return false
		}
	}
}

// isNone reports that pid belongs to none of the trees for sure, its leaders excepted.
func (s *sweep) isNone(pid int) bool {
	m, err := readMember(pid)
	if err != nil || !m.alive() {
		return !scarce(err)
	}
	if i := s.treeOf(m); i >= 0 {
		return s.trees[i].leader == pid
	}
	environ, _ := s.environ(pid)
	return len(environ) > 0 && s.marked(environ) < 0 // empty in the middle of an execve
}

// lastPid returns the pid that was last given to a process or thread of the
// host's own pid namespace. Not all kernels tell.
func lastPid() (int, bool) {
	var buf [32]byte
	data, _ := readFile("/proc/sys/kernel/ns_last_pid", buf[:])
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	return n, err == nil && n > 0
}

// childless reports that a process has no children, zombies included. It is
// false if the kernel doesn't tell, and if the process has begun to exit: its
// children are no longer its own then.
//
// A child belongs to the thread that forked it, and when that one ends to the
// first thread, unless that is exiting. So the first is asked last.
func childless(pid int) bool {
	first := strconv.Itoa(pid)
	threads, err := os.ReadDir("/proc/" + first + "/task")
	if err != nil {
		return false
	}
	for _, thread := range threads {
		if tid := thread.Name(); tid != first && !childlessThread(tid) {
			return false
		}
	}
	if !childlessThread(first) {
		return false
	}
	now, err := readMember(pid)
	return err == nil && !now.exiting
}

// childlessThread asks a thread through the directory that it has of its own. To
// open a file in the one below its process makes the kernel take milliseconds of
// CPU to reap the process.
func childlessThread(tid string) bool {
	children, err := os.ReadFile("/proc/" + tid + "/task/" + tid + "/children")
	return err == nil && len(children) == 0
}

// waits reports that a process doesn't ignore SIGCHLD. The children of one that
// does leave no trace.
func waits(pid int) bool {
	var buf [4 << 10]byte
	status, _ := readProc(pid, "status", buf[:])
	_, after, ok := bytes.Cut(status, []byte("\nSigIgn:\t"))
	if !ok {
		return false
	}
	mask, _, _ := bytes.Cut(after, []byte("\n"))
	ignored, err := strconv.ParseUint(string(mask), 16, 64)
	return err == nil && ignored&(1<<(syscall.SIGCHLD-1)) == 0
}

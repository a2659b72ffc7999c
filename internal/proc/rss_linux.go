package proc

import (
	"bytes"
	"os"
	"strconv"
)

// RSS returns the resident memory of the whole tree, in bytes; pages that its
// processes share count for each of them. It walks /proc, which takes
// milliseconds where there are many processes. ok is false once the program has
// exited, and on other systems than Linux.
func (p *Process) RSS() (rss int64, ok bool) {
	rss = residentOf(p.tree.pid)
	for _, m := range sweeps.find(p.tree.want(nil)) {
		rss += residentOf(m.pid)
	}
	select {
	case <-p.exited: // the pid may have been anybody's
		return 0, false
	default:
		return rss, rss > 0
	}
}

// residentOf reads the second field of /proc/<pid>/statm, the resident pages.
func residentOf(pid int) int64 {
	var buf [128]byte
	fields := bytes.Fields(readProc(pid, "statm", buf[:]))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

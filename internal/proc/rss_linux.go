package proc

import (
	"bytes"
	"os"
	"strconv"

	"github.com/mcppool/mcppool/internal/await"
)

// RSSOf returns the resident memory of whole trees, in bytes, by their index; pages
// that processes share count for each of them. It walks /proc once, which takes
// milliseconds where there are many processes. What isn't known is 0: that of a tree
// whose program has exited, that of all if not all processes could be looked at, and
// anything on other systems than Linux.
func RSSOf(procs ...*Process) []int64 {
	trees := make([]wanted, len(procs))
	for i, p := range procs {
		trees[i] = p.tree.want(nil)
	}
	sums := make([]int64, len(procs))
	members, whole := sweeps.find(trees...)
	if !whole {
		return sums
	}
	for i, p := range procs {
		sum := residentOf(p.tree.pid)
		for _, m := range members[i] {
			sum += residentOf(m.pid)
		}
		if !await.Closed(p.exited, 0) { // else the pid may have been anybody's
			sums[i] = sum
		}
	}
	return sums
}

// residentOf reads the second field of /proc/<pid>/statm, the resident pages.
func residentOf(pid int) int64 {
	var buf [128]byte
	statm, _ := readProc(pid, "statm", buf[:])
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

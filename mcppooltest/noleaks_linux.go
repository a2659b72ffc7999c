package mcppooltest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is what /proc/<pid>/stat says of one.
type process struct {
	pid, parent int
	start       string
	state       string
	name        string
}

// addProcesses lists the descendants of this process, zombies included, and those that
// bear its mark.
func addProcesses(all map[string]string) {
	self := os.Getpid()
	byID := make(map[int]process)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if p, ok := readProcess(dir); ok {
			byID[p.pid] = p
		}
	}
	mark := []byte(ownerVariable + "=" + strconv.Itoa(self) + "\x00")
	for pid, p := range byID {
		if pid == self || !descends(byID, p, self) && !bears(pid, mark) {
			continue
		}
		all[fmt.Sprintf("process %d %s", pid, p.start)] = fmt.Sprintf("process %d (%s, state %s)", pid, p.name, p.state)
	}
}

func readProcess(dir string) (p process, ok bool) {
	data, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return p, false // it has gone
	}
	// The name is in parentheses and may hold any byte.
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(string(data[end+1:])) // from the third, the state
	if len(fields) < 20 {
		return p, false
	}
	p.pid, err = strconv.Atoi(filepath.Base(dir))
	p.name = string(data[open+1 : end])
	p.state, p.start = fields[0], fields[19]
	p.parent, _ = strconv.Atoi(fields[1])
	return p, err == nil
}

func descends(byID map[int]process, p process, from int) bool {
	for range len(byID) { // parents that change meanwhile make no endless loop
		if p.parent == from {
			return true
		}
		up, ok := byID[p.parent]
		if !ok {
			return false
		}
		p = up
	}
	return false
}

func bears(pid int, mark []byte) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, mark)
}

// addDescriptors lists the open descriptors, but for those that the runtime opens once for
// good, and the one that lists them.
func addDescriptors(all map[string]string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		all["descriptor "+e.Name()+" "+target] = "descriptor " + e.Name() + ": " + target
	}
}

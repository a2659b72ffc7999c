package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// process is one that belonged to a server when it was looked at.
type process struct {
	pid      int
	parent   int
	session  int
	begun    string // its start, in ticks since the boot
	dead     bool
	resident int64 // bytes
}

// treeOf returns the process, its descendants, and whoever is of its session: the
// pool starts each server in a session of its own.
func treeOf(pid int) []process {
	var all, tree []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if id, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if p, ok := readProcess(id); ok && !p.dead {
				all = append(all, p)
			}
		}
	}
	within := map[int]bool{pid: true}
	for found := true; found; {
		found = false
		all = slices.DeleteFunc(all, func(p process) bool {
			if p.pid != pid && p.session != pid && !within[p.parent] {
				return false
			}
			within[p.pid], found = true, true
			tree = append(tree, p)
			return true
		})
	}
	return tree
}

// The places of the fields of /proc/<pid>/stat behind the name, see proc(5).
const (
	statState   = 0
	statParent  = 1
	statSession = 3
	statBegun   = 19
	statPages   = 21
)

func readProcess(pid int) (p process, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// The name, in brackets, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statPages {
		return p, false
	}
	number := func(at int) int {
		n, _ := strconv.Atoi(string(fields[at])) // the kernel's
		return n
	}
	state := fields[statState][0]
	return process{
		pid: pid, parent: number(statParent), session: number(statSession), begun: string(fields[statBegun]),
		dead:     state == 'Z' || state == 'X',
		resident: int64(number(statPages)) * int64(os.Getpagesize()),
	}, true
}

// lives reports whether the process is still there.
func (p *process) lives() bool {
	now, ok := readProcess(p.pid)
	return ok && !now.dead && now.begun == p.begun
}

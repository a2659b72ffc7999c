package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// walkTime bounds one walk of /proc, on a host with very many processes.
	walkTime = 500 * time.Millisecond

	maxEnviron = 256 << 10 // what is read of a process's environment
)

// wanted says whose members to find.
type wanted struct {
	leader  int
	marker  string
	noGroup bool     // the leader's pid may be anybody's: its group doesn't count
	known   []member // members whatever else they show
}

// sweeps finds the members of trees.
var sweeps = sweeper{walking: make(chan struct{}, 1)}

// sweeper walks /proc for trees that end. One walk serves all that ask while
// another is under way, so that the end of a thousand trees takes a few walks
// rather than a thousand.
type sweeper struct {
	walking chan struct{} // held during a walk

	mu   sync.Mutex // protects next
	next *sweep     // what the next walk is to look for; nil if nobody asked
}

// sweep is one walk of /proc: what it looks for, and what it found.
type sweep struct {
	trees []wanted
	found [][]member // of trees, by index; set once done is closed
	done  chan struct{}
	buf   []byte
}

// find returns the members of one tree but for its leader. Zombies are among
// them. The walk begins after the call.
func (s *sweeper) find(tree wanted) []member {
	s.mu.Lock()
	first := s.next == nil
	if first {
		s.next = &sweep{done: make(chan struct{}), buf: make([]byte, 4<<10)}
	}
	walk := s.next
	index := len(walk.trees)
	walk.trees = append(walk.trees, tree)
	s.mu.Unlock()

	if first {
		s.walking <- struct{}{}
		s.mu.Lock()
		s.next = nil // whoever comes now would not be looked for
		s.mu.Unlock()
		walk.run()
		<-s.walking
	}
	<-walk.done
	return walk.found[index]
}

// run walks /proc once.
func (s *sweep) run() {
	defer close(s.done)
	s.found = make([][]member, len(s.trees))
	deadline := time.Now().Add(walkTime)
	since := s.since()

	members := make(map[int]member) // whoever may be a member, by pid
	trees := make(map[int]int)      // the index of the tree a pid belongs to, -1 for none
	for _, pid := range pids() {
		if time.Now().After(deadline) {
			break
		}
		m, ok := readMember(pid)
		if !ok || m.start < since || pid == os.Getpid() {
			continue
		}
		members[pid] = m
		if i := s.treeOf(m); i >= 0 {
			trees[pid] = i
		}
	}
	for pid, m := range members {
		i := inherit(pid, members, trees)
		if i >= 0 && pid != s.trees[i].leader {
			s.found[i] = append(s.found[i], m)
		}
	}
}

// since returns the start time of the oldest leader: no member is older.
func (s *sweep) since() uint64 {
	var oldest uint64
	for i, tree := range s.trees {
		leader, ok := readMember(tree.leader)
		if !ok || tree.noGroup {
			return 0
		}
		if i == 0 || leader.start < oldest {
			oldest = leader.start
		}
	}
	return oldest
}

// treeOf returns the index of the tree that m itself shows to belong to, or -1.
func (s *sweep) treeOf(m member) int {
	for i, tree := range s.trees {
		if m.pgrp == tree.leader && !tree.noGroup || slices.ContainsFunc(tree.known, m.same) {
			return i
		}
	}
	return s.marked(s.environ(m.pid))
}

// environ returns the environment that pid was started with, cut off after
// maxEnviron bytes. It is valid until the next call.
func (s *sweep) environ(pid int) []byte {
	for {
		environ := readProc(pid, "environ", s.buf)
		if len(environ) < len(s.buf) || len(s.buf) >= maxEnviron {
			return environ
		}
		s.buf = make([]byte, 4*len(s.buf))
	}
}

// marked returns the index of the tree whose marker environ holds, or -1.
func (s *sweep) marked(environ []byte) int {
	const name = TreeEnv + "="
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(name)) {
			return slices.IndexFunc(s.trees, func(tree wanted) bool { return tree.marker == string(entry) })
		}
	}
	return -1
}

// inherit returns the tree of pid, which is its own or that of its nearest
// ancestor that has one, and notes it in trees.
func inherit(pid int, members map[int]member, trees map[int]int) int {
	if i, ok := trees[pid]; ok {
		return i
	}
	m, ok := members[pid]
	if !ok {
		return -1
	}
	trees[pid] = -1 // ends the walk should pids changed hands meanwhile and form a ring
	i := inherit(m.ppid, members, trees)
	trees[pid] = i
	return i
}

// pids lists the processes.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

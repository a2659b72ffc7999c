package proc

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// walkTime bounds one walk of /proc, on a host with very many processes.
	walkTime = 500 * time.Millisecond

	// maxListings bounds how often a walk looks for who was started while it was
	// under way, on a host that starts programs all the time.
	maxListings = 4

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

// find returns the members of trees but for their leaders, by the trees' index.
// Zombies are among them. whole is false if not all processes could be looked at:
// then there may be more. The walk begins after the call.
func (s *sweeper) find(trees ...wanted) (found [][]member, whole bool) {
	s.mu.Lock()
	first := s.next == nil
	if first {
		s.next = newSweep()
	}
	walk := s.next
	index := len(walk.trees)
	for _, tree := range trees {
		walk.add(tree)
	}
	s.mu.Unlock()

	if first {
		s.walking <- struct{}{}
		s.mu.Lock()
		s.next = nil // whoever comes now would not be looked for
		s.mu.Unlock()
		walk.run(time.Now().Add(walkTime))
		<-s.walking
	}
	<-walk.done
	return walk.found[index : index+len(trees)], !walk.cut
}

// sweep is one walk of /proc: what it looks for, and what it found.
type sweep struct {
	trees   []wanted
	leaders map[int]int    // the index of a tree by its leader, unless that may be anybody
	markers map[string]int // by its marker
	known   map[ident]int  // by a member

	since   uint64         // nobody older is a member
	members map[int]member // whoever may be a member, by pid
	owners  map[int]int    // the index of the tree that a pid belongs to, -1 for none
	unclear []int          // pids whose environment didn't show yet
	buf     []byte

	found [][]member // of trees, by index; set once done is closed
	cut   bool       // not all processes were looked at
	done  chan struct{}
}

func newSweep() *sweep {
	return &sweep{
		leaders: make(map[int]int),
		markers: make(map[string]int),
		known:   make(map[ident]int),
		members: make(map[int]member),
		owners:  make(map[int]int),
		buf:     make([]byte, 4<<10),
		done:    make(chan struct{}),
	}
}

func (s *sweep) add(tree wanted) {
	i := len(s.trees)
	s.trees = append(s.trees, tree)
	s.markers[tree.marker] = i
	if !tree.noGroup {
		s.leaders[tree.leader] = i
	}
	for _, m := range tree.known {
		s.known[m.ident()] = i
	}
}

// run walks /proc once.
func (s *sweep) run(deadline time.Time) {
	defer close(s.done)
	s.lookAtAll(deadline)
	for pause := time.Millisecond; len(s.unclear) > 0 && time.Now().Before(deadline); pause *= 2 {
		time.Sleep(min(pause, 20*time.Millisecond))
		again := s.unclear
		s.unclear = nil
		for _, pid := range again {
			s.lookAt(pid)
		}
	}
	s.found = make([][]member, len(s.trees))
	for pid, m := range s.members {
		i := s.inherit(pid)
		if i >= 0 && pid != s.trees[i].leader {
			s.found[i] = append(s.found[i], m)
		}
	}
}

// lookAtAll looks at each process, and at those that they start meanwhile: a member
// that ends before it is looked at may have left another.
func (s *sweep) lookAtAll(deadline time.Time) {
	s.since = s.oldest()
	seen := make(map[int]bool)
	for range maxListings {
		all, err := pids()
		s.cut = s.cut || scarce(err)
		fresh := slices.DeleteFunc(all, func(pid int) bool { return seen[pid] })
		if len(fresh) == 0 {
			return
		}
		// The newest first: they are those of the trees if not all can be looked at.
		slices.SortFunc(fresh, func(a, b int) int { return cmp.Compare(b, a) })
		for _, pid := range fresh {
			if time.Now().After(deadline) {
				s.cut = true
				return
			}
			seen[pid] = true
			s.lookAt(pid)
		}
	}
}

// lookAt notes what pid shows.
func (s *sweep) lookAt(pid int) {
	m, err := readMember(pid)
	if scarce(err) {
		s.cut = true
	}
	if err != nil || m.start < s.since || pid == os.Getpid() {
		return
	}
	s.members[pid] = m
	i := s.treeOf(m)
	if i < 0 {
		environ, err := s.environ(pid)
		if scarce(err) {
			s.cut = true
		}
		if err == nil && len(environ) == 0 && inExec(pid) {
			s.unclear = append(s.unclear, pid)
		}
		i = s.marked(environ)
	}
	if i >= 0 {
		s.owners[pid] = i
	}
}

// inExec reports that the environment of a process is empty only because it is in the
// middle of an execve, or was a moment ago.
func inExec(pid int) bool {
	m, err := readMember(pid)
	return err == nil && m.alive() && !m.ofKernel && (m.envEnd == 0 || m.envStart != m.envEnd)
}

// oldest returns the start time of the oldest leader: no member is older.
func (s *sweep) oldest() uint64 {
	var oldest uint64
	for i, tree := range s.trees {
		leader, err := readMember(tree.leader)
		if err != nil || tree.noGroup {
			return 0
		}
		if i == 0 || leader.start < oldest {
			oldest = leader.start
		}
	}
	return oldest
}

// treeOf returns the index of the tree that m belongs to by its group, its session, or
// as a known member, or -1.
func (s *sweep) treeOf(m member) int {
	for _, id := range [...]int{m.pgrp, m.session} {
		if i, ok := s.leaders[id]; ok {
			return i
		}
	}
	if i, ok := s.known[m.ident()]; ok {
		return i
	}
	return -1
}

// environ returns the environment that pid was started with, cut off after
// maxEnviron bytes. It is valid until the next call.
func (s *sweep) environ(pid int) ([]byte, error) {
	for {
		environ, err := readProc(pid, "environ", s.buf)
		if err != nil || len(environ) < len(s.buf) || len(s.buf) >= maxEnviron {
			return environ, err
		}
		s.buf = make([]byte, 4*len(s.buf))
	}
}

// marked returns the index of the tree whose marker environ holds, or -1.
func (s *sweep) marked(environ []byte) int {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(TreeEnv+"=")) {
			if i, ok := s.markers[string(entry)]; ok {
				return i
			}
			return -1
		}
	}
	return -1
}

// inherit returns the tree of pid, which is its own or that of its nearest
// ancestor that has one, and notes it in owners.
func (s *sweep) inherit(pid int) int {
	if i, ok := s.owners[pid]; ok {
		return i
	}
	m, ok := s.members[pid]
	if !ok {
		return -1
	}
	s.owners[pid] = -1 // ends the walk should pids changed hands meanwhile and form a ring
	i := s.inherit(m.ppid)
	s.owners[pid] = i
	return i
}

// pids lists the processes.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, err
}

package poolstate

import (
	"errors"
	"fmt"
	"slices"
)

// Check reports what is wrong in a State, whatever is under way; it is for tests. It
// takes as long as there are sessions.
func (st *State) Check() error {
	c := checker{st: st, keys: map[Key]bool{}, scopes: map[*scope]*tally{}}
	for d, g := range st.groups {
		if len(g.members) == 0 {
			return errors.New("a server without sessions is remembered")
		}
		if err := c.group(d, g); err != nil {
			return err
		}
	}
	return c.totals()
}

// checker counts what a State counts as it goes, from its sessions.
type checker struct {
	st     *State
	counts Counts
	queued int
	kept   int // live ones
	all    tally
	keys   map[Key]bool
	scopes map[*scope]*tally
}

func (c *checker) group(d Digest, g *Group) error {
	var (
		server   tally
		starting int
	)
	for s := range g.members {
		if s.Key.Server != d || s.Group != g {
			return errors.New("a session is in another server's group")
		}
		if err := errors.Join(c.links(s), c.use(s)); err != nil {
			return err
		}
		c.count(s)
		if s.spare && s.status < Live {
			starting++
		}
		if !s.process {
			continue
		}
		countIn(&server, s, LimitServer)
		countIn(&c.all, s, LimitProcesses, LimitStarting)
		if s.scope != nil {
			if c.scopes[s.scope] == nil {
				c.scopes[s.scope] = new(tally)
			}
			countIn(c.scopes[s.scope], s, LimitScope)
		}
	}
	if starting != g.starting {
		return fmt.Errorf("%d spares are starting, should be %d", g.starting, starting)
	}
	if server != g.tally {
		return fmt.Errorf("a server's tally is %+v, should be %+v", g.tally, server)
	}
	return nil
}

func countIn(t *tally, s *Session, limits ...Limit) {
	if s.ran {
		t.processes++
		if s.status == Closing {
			t.ending++
		}
	}
	if slices.Contains(limits, s.waitsFor) {
		t.waiting++
	}
}

// links looks at where s can be found.
func (c *checker) links(s *Session) error {
	switch {
	case s.linked && !s.shared && c.st.sessions[s.Key] != s:
		return errors.New("a linked session isn't its key's")
	case s.linked && !s.shared && c.keys[s.Key]:
		return errors.New("two linked sessions have one key")
	case s.linked && s.shared && !slices.Contains(s.Group.shared, s):
		return errors.New("a linked shared session isn't its server's")
	case s.linked && s.status >= Closing:
		return errors.New("a session that closes can be found")
	case s.linked && s.spare:
		return errors.New("a spare can be found")
	case s.linked && s.stale.Load():
		return errors.New("a replaced session can be found")
	case s.scope != nil && c.st.scopes[s.Key.Scope] != s.scope:
		return errors.New("a session is in another scope's group")
	}
	if s.scope != nil {
		if _, ok := s.scope.members[s]; !ok {
			return errors.New("a session is missing from its scope")
		}
	}
	c.keys[s.Key] = c.keys[s.Key] || s.linked
	return nil
}

// use looks at who uses s.
func (c *checker) use(s *Session) error {
	idle := s.idle.Filed() && !s.spare
	switch {
	case s.status == Closed:
		return errors.New("a closed session is remembered")
	case s.inFlight < 0:
		return errors.New("more borrows were given back than taken")
	case idle && (s.inFlight > 0 || !s.linked || s.status != Live):
		return errors.New("a session that is used, closing or connecting is filed as idle")
	case s.linked && s.inFlight == 0 && !idle:
		return errors.New("a session that nobody borrows isn't filed as idle")
	case s.spare && (s.inFlight > 0 || s.status == Live != s.idle.Filed()):
		return errors.New("a spare is used, or not filed")
	case !s.linked && !s.spare && s.inFlight == 0 && s.status < Closing:
		return errors.New("a session that nobody can reach isn't being closed")
	case (s.status == Queued) != (s.place != nil):
		return errors.New("a queued session has no place, or another has one")
	case s.status == Queued && s.waitsFor == LimitNone:
		return errors.New("a queued session waits for nothing")
	}
	return nil
}

func (c *checker) count(s *Session) {
	c.counts.Open++
	c.counts.of[s.status]++
	if s.linked {
		c.counts.Kept++
		if s.status == Live {
			c.kept++
		}
	}
	if s.idle.Filed() && !s.spare {
		c.counts.Idle++
	}
	if s.status == Live && s.inFlight > 0 {
		c.counts.Borrowed++
	}
	if s.spare && s.status == Live {
		c.counts.Spares++
	}
	if s.status == Queued {
		c.queued++
		c.counts.Waiting += s.inFlight
	}
	if s.ran {
		c.counts.Processes++
	}
}

func (c *checker) totals() error {
	st, want := c.st, &c.counts
	if c.all != st.tally {
		return fmt.Errorf("the tally is %+v, should be %+v", st.tally, c.all)
	}
	for sc, t := range c.scopes {
		if sc.tally != *t {
			return fmt.Errorf("a scope's tally is %+v, should be %+v", sc.tally, *t)
		}
	}
	got := st.Counts()
	want.Connects, want.Failures, want.Opened, want.Evicted = got.Connects, got.Failures, got.Opened, got.Evicted
	want.Queued, want.Connecting, want.Live, want.Closing = want.of[Queued], want.of[Connecting], want.of[Live], want.of[Closing]
	if got != *want {
		return fmt.Errorf("the counts are %+v, should be %+v", got, *want)
	}
	if c.queued != st.queue.Len() {
		return fmt.Errorf("%d sessions are in the queue, should be %d", st.queue.Len(), c.queued)
	}
	if limit := st.cfg.MaxSessions; limit > 0 && c.kept > limit && got.Idle > 1 {
		return fmt.Errorf("%d live sessions are kept over a cap of %d though %d are idle", c.kept, limit, got.Idle)
	}
	return nil
}

// CheckQuiet reports what is wrong in a State of which no event is due: whoever waits
// at a limit does so because it is reached, and no idle session could make room.
func (st *State) CheckQuiet() error {
	waiting := map[*tally]int{}
	for s := range st.queue.All {
		if l, _ := st.full(s.Group, s.scope); l == LimitNone {
			return fmt.Errorf("session %d waits at a limit that isn't reached (%q)", s.ID, s.waitsFor)
		}
		// Who waits for two places gets room at the second when he has the first.
		reached := st.reached(s)
		starting := st.limits.MaxStarting > 0 && st.starting >= st.limits.MaxStarting
		if len(reached) == 1 && !starting {
			waiting[reached[0]]++
		}
	}
	for t, n := range waiting {
		if n <= t.ending {
			continue
		}
		for s := range st.All {
			if s.process && s.idle.Filed() && slices.Contains(st.counted(s), t) {
				return fmt.Errorf("%d wait for a process to end, %d do, and session %d is idle", n, t.ending, s.ID)
			}
		}
	}
	return nil
}

func (st *State) counted(s *Session) []*tally {
	t := st.tallies(s)
	return t[:]
}

// reached returns the tallies whose limit keeps s from starting.
func (st *State) reached(s *Session) (full []*tally) {
	add := func(t *tally, limit int) {
		if limit > 0 && t.processes >= limit {
			full = append(full, t)
		}
	}
	add(&st.tally, st.limits.MaxProcesses)
	if s.Group.exclusive {
		add(&s.Group.tally, 1)
	} else {
		add(&s.Group.tally, st.limits.MaxPerServer)
	}
	if s.scope != nil {
		add(&s.scope.tally, st.limits.MaxPerScope)
	}
	return full
}

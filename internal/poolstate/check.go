package poolstate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcppool/mcppool/internal/list"
)

// Check reports what is wrong in a State, whatever is under way; it is for tests. It
// takes as long as there are sessions.
func (st *State) Check() error {
	c := checker{st: st, keys: map[Key]bool{}, scopes: map[*scope]*tally{}, filed: map[*list.List[*Session]]int{}}
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
	st      *State
	counts  Counts
	queued  int
	kept    int // live ones
	all     tally
	warming int // spares
	filed   map[*list.List[*Session]]int
	keys    map[Key]bool
	scopes  map[*scope]*tally
}

func (c *checker) group(d Digest, g *Group) error {
	var (
		server  tally
		warming int
	)
	for s := range g.members {
		if s.Key.Server != d || s.Group != g {
			return errors.New("a session is in another server's group")
		}
		if err := errors.Join(c.links(s), c.use(s), c.line(s)); err != nil {
			return err
		}
		c.count(s)
		if s.spare && s.status < Live {
			warming++
		}
		if s.linked && s.shared && !slices.Contains(g.shared, s) {
			return errors.New("a linked shared session isn't its server's")
		}
		if s.idle.Filed() && !s.spare {
			c.filed[&g.idle]++
			if s.scope != nil && c.st.limits.MaxPerScope > 0 {
				c.filed[&s.scope.idle]++
			}
		}
		if !s.process {
			continue
		}
		countIn(&server, s)
		countIn(&c.all, s)
		if s.scope != nil {
			if c.scopes[s.scope] == nil {
				c.scopes[s.scope] = new(tally)
			}
			countIn(c.scopes[s.scope], s)
		}
	}
	c.warming += warming
	switch sharing, exclusive := c.policies(g); {
	case warming != g.warming.Len():
		return fmt.Errorf("%d spares are starting, should be %d", g.warming.Len(), warming)
	case exclusive != g.exclusive:
		return fmt.Errorf("%d sessions are exclusive, should be %d", g.exclusive, exclusive)
	case sharing != g.sharing:
		return fmt.Errorf("%d sessions are shared, should be %d", g.sharing, sharing)
	case !server.same(&g.tally):
		return fmt.Errorf("a server's tally is %+v, should be %+v", g.tally, server)
	case c.filed[&g.idle] != g.idle.Len():
		return fmt.Errorf("%d sessions of a server are idle, should be %d", g.idle.Len(), c.filed[&g.idle])
	}
	return nil
}

func (c *checker) policies(g *Group) (sharing, exclusive int) {
	for s := range g.members {
		if s.shared {
			sharing++
		}
		if s.policy.Exclusive {
			exclusive++
		}
	}
	return sharing, exclusive
}

func (t *tally) same(other *tally) bool {
	return t.processes == other.processes && t.ending == other.ending && t.queued == other.queued
}

func countIn(t *tally, s *Session) {
	if s.ran {
		t.processes++
		if s.status == Closing {
			t.ending++
		}
	}
	if s.status == Queued {
		t.queued++
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
	}
	return nil
}

// line looks at those who stand in line for s.
func (c *checker) line(s *Session) error {
	waits, alive := s.turns.Len(), s.cause == nil && s.status < Closing
	switch {
	case !alive:
	case waits > s.inFlight:
		return errors.New("more stand in line than borrow the session")
	case s.status < Live && waits != s.inFlight:
		return errors.New("somebody borrows a session that isn't live and has no place in its line")
	case s.turns.Stuck():
		return errors.New("somebody waits for a turn that nobody has")
	case s.linked && (s.status != Live || s.probed) != s.turns.Held():
		return errors.New("the line for a session is open and shouldn't be, or isn't and should")
	case s.stale.Load() && waits > 0 && !s.turns.Pending():
		return errors.New("somebody stands in line for a session that was replaced")
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
	if !c.all.same(&st.tally) {
		return fmt.Errorf("the tally is %+v, should be %+v", st.tally, c.all)
	}
	for sc, t := range c.scopes {
		if !sc.tally.same(t) {
			return fmt.Errorf("a scope's tally is %+v, should be %+v", sc.tally, *t)
		}
		if c.filed[&sc.idle] != sc.idle.Len() {
			return fmt.Errorf("%d sessions of a scope are idle, should be %d", sc.idle.Len(), c.filed[&sc.idle])
		}
	}
	got := st.Counts()
	want.Connects, want.Failures, want.Opened, want.Evicted = got.Connects, got.Failures, got.Opened, got.Evicted
	want.Queued, want.Connecting, want.Live, want.Closing = want.of[Queued], want.of[Connecting], want.of[Live], want.of[Closing]
	if got != *want {
		return fmt.Errorf("the counts are %+v, should be %+v", got, *want)
	}
	if c.warming != st.warming.Len() {
		return fmt.Errorf("%d spares are connecting, should be %d", st.warming.Len(), c.warming)
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
	for s := range st.queue.All {
		reached := st.reached(s)
		if l, _ := st.full(s.Group, s.scope); l == LimitNone {
			return fmt.Errorf("session %d waits at a limit that isn't reached", s.ID)
		}
		idle := 0 // limits at which one could make room
		for _, t := range reached {
			if st.anyIdle(t) {
				idle++
			}
		}
		// Where something ends it may be for others that wait, and who starts later gets
		// room later.
		starting := st.limits.MaxStarting > 0 && st.starts.Len() >= st.limits.MaxStarting
		if len(reached) > 0 && idle == len(reached) && st.tally.ending == 0 && !starting {
			return fmt.Errorf("session %d waits at %d limits, and idle ones could make room", s.ID, len(reached))
		}
	}
	return nil
}

func (st *State) anyIdle(t *tally) bool {
	for s := range st.All {
		if s.process && s.idle.Filed() && slices.Contains(st.counted(s), t) {
			return true
		}
	}
	return false
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
	if s.Group.exclusive > 0 {
		add(&s.Group.tally, 1)
	} else {
		add(&s.Group.tally, st.limits.MaxPerServer)
	}
	if s.scope != nil {
		add(&s.scope.tally, st.limits.MaxPerScope)
	}
	return full
}

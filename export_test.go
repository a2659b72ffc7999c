package mcppool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcppool/mcppool/internal/keyed"
)

// Remembered counts what the pool holds of servers, scopes and idle times.
func Remembered(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions) + len(p.servers) + len(p.scopes) + p.idle.Classes() + p.idle.Len() + p.open +
		p.spares.Classes() + p.spares.Len() + p.queue.Len() + p.waiting + p.kept + p.tally.processes + p.tally.ending + p.tally.waiting + p.starting
}

// ReapOldest does what the reaper does when the time of the longest idle
// session is up.
func ReapOldest(p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest, _ := p.idle.Oldest(nil)
	p.unlinkLocked(oldest.Value, CloseIdle)
}

// SetRSSInterval has memory looked at more often, until undo.
func SetRSSInterval(d time.Duration) (undo func()) {
	old := rssInterval
	rssInterval = d
	return func() { rssInterval = old }
}

// CheckInvariants looks at everything that the pool's lock protects.
func CheckInvariants(p *Pool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var (
		open, linked, live, idle, borrowed, spares, queued, waiting int
		all                                                         tally
		keys                                                        = map[key]bool{}
	)
	add := func(t *tally, s *session, limits ...limit) {
		if s.ran {
			t.processes++
			if s.state == stateClosing {
				t.ending++
			}
		}
		if slices.Contains(limits, s.waitsFor) {
			t.waiting++
		}
	}
	scopes := map[*scopeGroup]*tally{}
	for d, g := range p.servers {
		if len(g.members) == 0 {
			return errors.New("a server without sessions is remembered")
		}
		var (
			ofServer tally
			starting int
		)
		for s := range g.members {
			open++
			isIdle := s.idle.Filed() && !s.spare
			switch {
			case s.key.server != d, s.group != g:
				return errors.New("a session is in another server's group")
			case s.state == stateClosed:
				return errors.New("a closed session is remembered")
			case s.inFlight < 0:
				return errors.New("more borrows were given back than taken")
			case s.linked && !s.shared && p.sessions[s.key] != s:
				return errors.New("a linked session isn't its key's")
			case s.linked && !s.shared && keys[s.key]:
				return errors.New("two linked sessions have one key")
			case s.linked && s.shared && !slices.Contains(g.shared, s):
				return errors.New("a linked shared session isn't its server's")
			case s.linked && s.state >= stateClosing:
				return errors.New("a session that closes can be found")
			case s.linked && s.spare:
				return errors.New("a spare can be found")
			case s.linked && s.stale.Load():
				return errors.New("a replaced session can be found")
			case isIdle && (s.inFlight > 0 || !s.linked || s.state != stateLive):
				return errors.New("a session that is used, closing or connecting is filed as idle")
			case s.linked && s.inFlight == 0 && !isIdle:
				return errors.New("a session that nobody borrows isn't filed as idle")
			case s.spare && (s.inFlight > 0 || s.state == stateLive != s.idle.Filed()):
				return errors.New("a spare is used, or not filed")
			case !s.linked && !s.spare && s.inFlight == 0 && s.state < stateClosing:
				return errors.New("a session that nobody can reach isn't being closed")
			case s.scope != nil && (p.scopes[s.key.scope] != s.scope || !hasMember(s.scope.members, s)):
				return errors.New("a session is missing from its scope")
			case (s.state == stateQueued) != (s.place != nil):
				return errors.New("a queued session has no place, or another has one")
			}
			keys[s.key] = keys[s.key] || s.linked
			if s.spare && s.state < stateLive {
				starting++
			}
			if s.linked {
				linked++
				if s.state == stateLive {
					live++
				}
			}
			if isIdle {
				idle++
			}
			if s.state == stateLive && s.inFlight > 0 {
				borrowed++
			}
			if s.spare && s.state == stateLive {
				spares++
			}
			if s.state == stateQueued {
				queued++
				waiting += s.inFlight
				if l := s.waitsFor; l == limitNone {
					return errors.New("a queued session waits for nothing")
				}
			}
			if s.process {
				add(&ofServer, s, limitServer)
				add(&all, s, limitProcesses, limitStarting)
				if s.scope != nil {
					if scopes[s.scope] == nil {
						scopes[s.scope] = new(tally)
					}
					add(scopes[s.scope], s, limitScope)
				}
			}
		}
		if starting != g.starting {
			return fmt.Errorf("%d spares are starting, should be %d", g.starting, starting)
		}
		if ofServer != g.tally {
			return fmt.Errorf("a server's tally is %+v, should be %+v", g.tally, ofServer)
		}
	}
	if all != p.tally {
		return fmt.Errorf("the tally is %+v, should be %+v", p.tally, all)
	}
	for sc, t := range scopes {
		if sc.tally != *t {
			return fmt.Errorf("a scope's tally is %+v, should be %+v", sc.tally, *t)
		}
	}
	if open != p.open || linked != p.kept || idle != p.idle.Len() || spares != p.spares.Len() ||
		queued != p.queue.Len() || waiting != p.waiting {
		return fmt.Errorf("counts differ: open %d/%d, linked %d/%d, idle %d/%d, spares %d/%d, queued %d/%d, waiting %d/%d",
			open, p.open, linked, p.kept, idle, p.idle.Len(), spares, p.spares.Len(), queued, p.queue.Len(), waiting, p.waiting)
	}
	if borrowed != p.borrowedLocked() {
		return fmt.Errorf("%d live sessions are borrowed, counted as %d", borrowed, p.borrowedLocked())
	}
	if limit := p.opts.maxSessions(); limit > 0 && live > limit && idle > 1 {
		return fmt.Errorf("%d sessions are kept over a cap of %d though %d are idle", live, limit, idle)
	}
	return nil
}

// CheckQuiet looks at a pool in which nothing runs: whoever waits at a limit does so
// because it is reached, and no idle session could make room.
func CheckQuiet(p *Pool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := map[*tally]int{}
	for s := range p.queue.All {
		if l, _ := p.fullLocked(s.group, s.scope); l == limitNone {
			return fmt.Errorf("%s waits at a limit that isn't reached (%q)", s.label, s.waitsFor)
		}
		// Who waits for two places gets room at the second when he has the first.
		var reached []*tally
		full := func(t *tally, limit int) {
			if limit > 0 && t.processes >= limit {
				reached = append(reached, t)
			}
		}
		full(&p.tally, p.limits.MaxProcesses)
		if s.group.exclusive {
			full(&s.group.tally, 1)
		} else {
			full(&s.group.tally, p.limits.MaxPerServer)
		}
		if s.scope != nil {
			full(&s.scope.tally, p.limits.MaxPerScope)
		}
		starting := p.limits.MaxStarting > 0 && p.starting >= p.limits.MaxStarting
		if len(reached) == 1 && !starting {
			waiting[reached[0]]++
		}
	}
	for t, n := range waiting {
		if n <= t.ending {
			continue
		}
		for _, g := range p.servers {
			for s := range g.members {
				mine := false
				s.tallies(func(of *tally) { mine = mine || of == t })
				if mine && s.process && s.idle.Filed() {
					return fmt.Errorf("%d wait for a process to end, %d do, and %s is idle", n, t.ending, s.label)
				}
			}
		}
	}
	return nil
}

func hasMember(set map[*session]struct{}, s *session) bool {
	_, ok := set[s]
	return ok
}

// Encoding is the whole text that a server's digest is made of.
func Encoding(s Server) string { return string(serverFrames(keyed.New(nil), &s)) }

// ProbeSession asks whether the server of a borrowed session is alive.
func ProbeSession(ctx context.Context, l *Session) error { return l.s.probe(ctx) }

// RSS is the memory of the process tree of a borrowed session.
func RSS(l *Session) (bytes int64, ok bool) {
	return l.s.client.(interface{ RSS() (int64, bool) }).RSS()
}

// Breakers counts the failing servers that are remembered.
func Breakers(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.breakers.Len()
}

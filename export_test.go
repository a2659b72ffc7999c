package mcppool

import (
	"context"
	"errors"
	"fmt"
)

// Remembered counts what the pool holds of servers, scopes and idle times.
func Remembered(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions) + len(p.servers) + len(p.scopes) + len(p.idle.classes) + p.idle.len + p.open
}

// ReapOldest does what the reaper does when the time of the longest idle
// session is up.
func ReapOldest(p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlinkLocked(p.idle.oldest(nil), CloseIdle)
}

// CheckInvariants looks at everything that the pool's lock protects.
func CheckInvariants(p *Pool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var open, linked, live, idle int
	for d, g := range p.servers {
		if len(g.members) == 0 {
			return errors.New("a server without sessions is remembered")
		}
		for s := range g.members {
			open++
			switch {
			case s.key.server != d, s.group != g:
				return errors.New("a session is in another server's group")
			case s.state == stateClosed:
				return errors.New("a closed session is remembered")
			case s.inFlight < 0:
				return errors.New("more borrows were given back than taken")
			case s.linked && p.sessions[s.key] != s:
				return errors.New("a linked session isn't its key's")
			case s.linked && s.state >= stateClosing:
				return errors.New("a session that closes can be found")
			case s.linked && s.stale.Load():
				return errors.New("a replaced session can be found")
			case s.idle.filed && (s.inFlight > 0 || !s.linked || s.state != stateLive):
				return errors.New("a session that is used, closing or connecting is filed as idle")
			case s.linked && s.inFlight == 0 && !s.idle.filed:
				return errors.New("a session that nobody borrows isn't filed as idle")
			case !s.linked && s.inFlight == 0 && s.state < stateClosing:
				return errors.New("a session that nobody can reach isn't being closed")
			case s.key.scope != "" && !hasMember(p.scopes[s.key.scope], s):
				return errors.New("a session is missing from its scope")
			}
			if s.linked {
				linked++
				if s.state == stateLive {
					live++
				}
			}
			if s.idle.filed {
				idle++
			}
		}
	}
	if open != p.open || linked != len(p.sessions) || idle != p.idle.len {
		return fmt.Errorf("counts differ: open %d/%d, linked %d/%d, idle %d/%d",
			open, p.open, linked, len(p.sessions), idle, p.idle.len)
	}
	if max := p.opts.maxSessions(); max > 0 && live > max && idle > 1 {
		return fmt.Errorf("%d sessions are kept over a cap of %d though %d are idle", live, max, idle)
	}
	return nil
}

func hasMember(set map[*session]struct{}, s *session) bool {
	_, ok := set[s]
	return ok
}

// Encoding is the whole text that a server's digest is made of.
func Encoding(s Server) string { return string(newFrames(nil).server(&s)) }

// Probe asks whether the server of a borrowed session is alive.
func Probe(ctx context.Context, l *Session) error { return l.s.probe(ctx) }

// RSS is the memory of the process tree of a borrowed session.
func RSS(l *Session) (bytes int64, ok bool) { return l.s.rss() }

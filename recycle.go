package mcppool

import (
	"context"
	"math/rand/v2"
	"time"
)

// Recycle replaces sessions that have become old, between calls and never during
// one. What a session held is lost with it, except that a shared server's next
// session is connected before its last one goes. Zero fields are off.
type Recycle struct {
	// MaxLifetime is how long a session may be used; up to a tenth of it is taken
	// off at random, so that not all go at once.
	MaxLifetime time.Duration
	// MaxCalls is how many tool calls it may make.
	MaxCalls int
	// MaxRSS is how many bytes of memory its process tree may use, looked at
	// every ten seconds. Linux only.
	MaxRSS int64
}

// dueLocked reports whether s is to be replaced. The caller must hold p.mu.
func (p *Pool) dueLocked(s *session) bool {
	r := &p.opts.Recycle
	return s.state == stateLive && (s.heavy ||
		r.MaxCalls > 0 && s.calls >= uint64(r.MaxCalls) ||
		s.recycleAt != 0 && p.now() >= s.recycleAt)
}

// setLifetime begins the life of s, which for a spare is when it is handed out. The
// caller must hold the pool's lock.
func (s *session) setLifetime() {
	if t := s.pool.opts.Recycle.MaxLifetime; t > 0 {
		s.recycleAt = s.pool.now() + t - rand.N(t/10+1)
	}
}

// recycleLocked replaces s, which is due, if that may be done now, and reports
// whether it did: a session of a scope when it is free, which means that no call is
// under way, and a shared one as soon as a spare can take its place, or when it is
// free and there is no room for a spare. The caller must hold p.mu.
func (p *Pool) recycleLocked(s *session, free bool) bool {
	g := s.group
	switch {
	case s.shared && len(g.spares) > 0:
	case s.shared && g.starting > 0:
		return false
	case s.shared:
		k := key{server: g.digest}
		if _, err := p.newSessionLocked(context.Background(), k, &s.srv, true); err == nil || !free {
			return false
		}
	case !free:
		return false
	}
	p.unlinkLocked(s, CloseRecycled)
	return true
}

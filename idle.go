package mcppool

import "time"

// idleSessions holds the sessions that nobody borrows, in the order in which
// they were given back. Sessions with the same timeout form a class, so that
// each class's order is also the order in which its sessions expire: a session
// is filed, taken out, expired or evicted at a cost that doesn't depend on how
// many others there are. It is protected by Pool.mu.
type idleSessions struct {
	classes map[time.Duration]*idleClass
	len     int
}

// idleClass is the idle sessions of one timeout, the longest idle first.
type idleClass struct {
	timeout     time.Duration // <= 0: these never expire
	front, back *session
	users       int // sessions of the class, idle or not
}

type idleLink struct {
	class      *idleClass
	prev, next *session
	filed      bool
}

// join gives the class of a timeout, to be left again with leave.
func (l *idleSessions) join(timeout time.Duration) *idleClass {
	timeout = max(timeout, 0)
	c := l.classes[timeout]
	if c == nil {
		c = &idleClass{timeout: timeout}
		l.classes[timeout] = c
	}
	c.users++
	return c
}

func (l *idleSessions) leave(c *idleClass) {
	if c.users--; c.users == 0 {
		delete(l.classes, c.timeout)
	}
}

// file appends s, which was given back last of all.
func (l *idleSessions) file(s *session) {
	if s.idle.filed {
		panic("bug: a session became idle twice")
	}
	c := s.idle.class
	s.idle.filed = true
	s.idle.prev = c.back
	if c.back == nil {
		c.front = s
	} else {
		c.back.idle.next = s
	}
	c.back = s
	l.len++
}

// remove takes s out; it does nothing when s isn't idle.
func (l *idleSessions) remove(s *session) {
	if !s.idle.filed {
		return
	}
	c := s.idle.class
	if prev := s.idle.prev; prev == nil {
		c.front = s.idle.next
	} else {
		prev.idle.next = s.idle.next
	}
	if next := s.idle.next; next == nil {
		c.back = s.idle.prev
	} else {
		next.idle.prev = s.idle.prev
	}
	s.idle.filed, s.idle.prev, s.idle.next = false, nil, nil
	l.len--
}

// oldest is the least recently used idle session but spared, or nil.
func (l *idleSessions) oldest(spared *session) *session {
	var found *session
	for _, c := range l.classes {
		s := c.front
		if s != nil && s == spared {
			s = s.idle.next
		}
		if s != nil && (found == nil || s.lastUsed < found.lastUsed) {
			found = s
		}
	}
	return found
}

// unusedSince is an idle session that was last used at t or before, or nil.
func (l *idleSessions) unusedSince(t moment) *session {
	for _, c := range l.classes {
		if c.front != nil && c.front.lastUsed <= t {
			return c.front
		}
	}
	return nil
}

// expired is an idle session whose time is up, or nil and when the next one's
// is; zero for never.
func (l *idleSessions) expired(now moment) (s *session, next moment) {
	for _, c := range l.classes {
		if c.front == nil || c.timeout == 0 {
			continue
		}
		at := c.front.lastUsed.add(c.timeout)
		if at <= now {
			return c.front, 0
		}
		if next == 0 || at < next {
			next = at
		}
	}
	return nil, next
}

// all gives the idle sessions; the list must not change meanwhile.
func (l *idleSessions) all(yield func(*session) bool) {
	for _, c := range l.classes {
		for s := c.front; s != nil; s = s.idle.next {
			if !yield(s) {
				return
			}
		}
	}
}

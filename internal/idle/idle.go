// Package idle keeps what nobody uses in the order of its last use, and finds
// what has been idle for too long.
//
// Entries with the same timeout form a class, so that each class's order is also
// the order in which its entries expire: an entry is filed, taken out, expired or
// evicted at a cost that doesn't depend on how many others there are.
//
// Times are durations since whatever moment the owner chose. A Lists is not safe
// for concurrent use; its owner's lock protects it.
package idle

import "time"

// Lists holds the idle entries. The zero value is empty.
type Lists[T any] struct {
	classes map[time.Duration]*class[T]
	len     int
}

// class is the idle entries of one timeout, the longest idle first.
type class[T any] struct {
	timeout     time.Duration // <= 0: these never expire
	front, back *Entry[T]
	users       int // entries of the class, idle or not
}

// Entry is one thing that is idle or not. Its owner embeds it.
type Entry[T any] struct {
	Value T
	Used  time.Duration // when it was last used

	class      *class[T]
	prev, next *Entry[T]
	filed      bool
}

// Timeout is the timeout of the class that e has joined; 0 means never.
func (e *Entry[T]) Timeout() time.Duration { return e.class.timeout }

// Filed reports whether e is idle.
func (e *Entry[T]) Filed() bool { return e.filed }

// Len is how many entries are idle.
func (l *Lists[T]) Len() int { return l.len }

// Classes is how many different timeouts are known.
func (l *Lists[T]) Classes() int { return len(l.classes) }

// Join makes e one of those with a timeout; negative and zero mean never. It is to
// be followed by Leave.
func (l *Lists[T]) Join(e *Entry[T], timeout time.Duration) {
	timeout = max(timeout, 0)
	c := l.classes[timeout]
	if c == nil {
		c = &class[T]{timeout: timeout}
		if l.classes == nil {
			l.classes = make(map[time.Duration]*class[T])
		}
		l.classes[timeout] = c
	}
	c.users++
	e.class = c
}

// Leave undoes Join, and Removes e if it is idle.
func (l *Lists[T]) Leave(e *Entry[T]) {
	l.Remove(e)
	if e.class.users--; e.class.users == 0 {
		delete(l.classes, e.class.timeout)
	}
}

// File makes e idle. It goes where e.Used puts it, which is last unless it was
// borrowed without being used.
func (l *Lists[T]) File(e *Entry[T]) {
	if e.filed {
		panic("bug: an entry became idle twice")
	}
	c := e.class
	prev := c.back
	for prev != nil && prev.Used > e.Used {
		prev = prev.prev
	}
	e.filed, e.prev = true, prev
	if prev == nil {
		e.next, c.front = c.front, e
	} else {
		e.next, prev.next = prev.next, e
	}
	if e.next == nil {
		c.back = e
	} else {
		e.next.prev = e
	}
	l.len++
}

// Remove ends the idleness of e; it does nothing when e isn't idle.
func (l *Lists[T]) Remove(e *Entry[T]) {
	if !e.filed {
		return
	}
	c := e.class
	if e.prev == nil {
		c.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.filed, e.prev, e.next = false, nil, nil
	l.len--
}

// Oldest is the least recently used entry but spared, which may be nil.
func (l *Lists[T]) Oldest(spared *Entry[T]) (e *Entry[T], ok bool) {
	for _, c := range l.classes {
		f := c.front
		if f != nil && f == spared {
			f = f.next
		}
		if f != nil && (e == nil || f.Used < e.Used) {
			e = f
		}
	}
	return e, e != nil
}

// UnusedSince is an entry that was last used at t or before.
func (l *Lists[T]) UnusedSince(t time.Duration) (e *Entry[T], ok bool) {
	for _, c := range l.classes {
		if c.front != nil && c.front.Used <= t {
			return c.front, true
		}
	}
	return nil, false
}

// Expired is an entry whose time is up, or none and when the next one's is; zero
// for never.
func (l *Lists[T]) Expired(now time.Duration) (e *Entry[T], next time.Duration) {
	for _, c := range l.classes {
		if c.front == nil || c.timeout == 0 {
			continue
		}
		at := c.front.Used + c.timeout
		if at <= now {
			return c.front, 0
		}
		if next == 0 || at < next {
			next = at
		}
	}
	return nil, next
}

// All gives the values of the idle entries; they must not change meanwhile.
func (l *Lists[T]) All(yield func(T) bool) {
	for _, c := range l.classes {
		for e := c.front; e != nil; e = e.next {
			if !yield(e.Value) {
				return
			}
		}
	}
}

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

import (
	"time"

	"github.com/mcppool/mcppool/internal/list"
)

// Lists holds the idle entries. The zero value is empty.
type Lists[T any] struct {
	classes map[time.Duration]*class[T]
	len     int
}

// class is the idle entries of one timeout, the longest idle first.
type class[T any] struct {
	timeout time.Duration // 0: these never expire
	idle    list.List[*Entry[T]]
	users   int // entries of the class, idle or not
}

// Entry is one thing that is idle or not. Its owner embeds it.
type Entry[T any] struct {
	Value T
	Used  time.Duration // when it was last used

	class *class[T]
	node  list.Node[*Entry[T]] // in class.idle while e is idle
}

// Timeout is the timeout of the class that e has joined; 0 means never.
func (e *Entry[T]) Timeout() time.Duration { return e.class.timeout }

// Filed reports whether e is idle.
func (e *Entry[T]) Filed() bool { return e.node.In() }

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
	if e.node.In() {
		panic("bug: an entry became idle twice")
	}
	idle := &e.class.idle
	prev := idle.Back()
	for prev != nil && prev.Value.Used > e.Used {
		prev = prev.Prev()
	}
	e.node.Value = e
	idle.InsertAfter(&e.node, prev)
	l.len++
}

// Remove ends the idleness of e; it does nothing when e isn't idle.
func (l *Lists[T]) Remove(e *Entry[T]) {
	if e.node.In() {
		e.class.idle.Remove(&e.node)
		l.len--
	}
}

// Oldest is the least recently used entry but spared, which may be nil.
func (l *Lists[T]) Oldest(spared *Entry[T]) (e *Entry[T], ok bool) {
	for _, c := range l.classes {
		f := c.idle.Front()
		if f != nil && f.Value == spared {
			f = f.Next()
		}
		if f != nil && (e == nil || f.Value.Used < e.Used) {
			e = f.Value
		}
	}
	return e, e != nil
}

// UnusedSince is an entry that was last used at t or before.
func (l *Lists[T]) UnusedSince(t time.Duration) (e *Entry[T], ok bool) {
	for _, c := range l.classes {
		if f := c.idle.Front(); f != nil && f.Value.Used <= t {
			return f.Value, true
		}
	}
	return nil, false
}

// Expired is an entry whose time is up, or none and when the next one's is; zero
// for never.
func (l *Lists[T]) Expired(now time.Duration) (e *Entry[T], next time.Duration) {
	for _, c := range l.classes {
		f := c.idle.Front()
		if f == nil || c.timeout == 0 {
			continue
		}
		at := f.Value.Used + c.timeout
		if at <= now {
			return f.Value, 0
		}
		if next == 0 || at < next {
			next = at
		}
	}
	return nil, next
}

// All returns the values of the idle entries; they must not change meanwhile.
func (l *Lists[T]) All(yield func(T) bool) {
	for _, c := range l.classes {
		for n := c.idle.Front(); n != nil; n = n.Next() {
			if !yield(n.Value.Value) {
				return
			}
		}
	}
}

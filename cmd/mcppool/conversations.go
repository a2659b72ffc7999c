package main

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// maxConversations bounds the sessions of clients; beyond it the one that has been unused
// for the longest time ends.
const maxConversations = 10_000

// errNoConversation has a client begin a new session, as the protocol wants it.
var errNoConversation = errors.New("no such session")

// conversations are the sessions of clients.
type conversations struct {
	over func(id string) // called once for each that has ended, after which nothing of it comes

	mu   sync.Mutex // protects the fields below
	live map[string]*conversation
}

// conversation is one of them.
type conversation struct {
	requests int       // under way
	used     time.Time // the end of the last one
}

func newConversations(over func(id string)) *conversations {
	return &conversations{over: over, live: make(map[string]*conversation)}
}

// Generate begins a session. Its id can't be guessed.
func (c *conversations) Generate() string {
	id := rand.Text()
	c.mu.Lock()
	c.live[id] = &conversation{used: time.Now()}
	oldest := ""
	if len(c.live) > maxConversations {
		oldest = c.unusedLocked(time.Now())
	}
	c.mu.Unlock()
	if oldest != "" {
		_, _ = c.Terminate(oldest)
	}
	return id
}

// unusedLocked is the one whose last request ended first, before a time; empty if there
// is none. The caller must hold c.mu.
func (c *conversations) unusedLocked(before time.Time) (oldest string) {
	for id, one := range c.live {
		if one.requests == 0 && one.used.Before(before) {
			oldest, before = id, one.used
		}
	}
	return oldest
}

// unused is a session that has been unused for a time; empty if there is none.
func (c *conversations) unused(since time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unusedLocked(time.Now().Add(-since))
}

// use notes that a request of a session is under way until the returned func is called.
func (c *conversations) use(id string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.live[id]
	if one == nil {
		return func() {}
	}
	one.requests++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		one.requests--
		one.used = time.Now()
	}
}

// Validate refuses what isn't a session.
func (c *conversations) Validate(id string) (terminated bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[id] == nil {
		return false, errNoConversation
	}
	return false, nil
}

// Terminate ends a session.
func (c *conversations) Terminate(id string) (notAllowed bool, err error) {
	c.mu.Lock()
	_, ok := c.live[id]
	delete(c.live, id)
	c.mu.Unlock()
	if !ok {
		return false, errNoConversation
	}
	c.over(id)
	return false, nil
}

package main

import (
	"crypto/rand"
	"errors"
	"sync"
)

// maxConversations bounds the sessions of clients; beyond it the one that began first
// ends.
const maxConversations = 10_000

// errNoConversation has a client begin a new session, as the protocol wants it.
var errNoConversation = errors.New("no such session")

// conversations are the sessions of clients.
type conversations struct {
	over func(id string) // called once for each that has ended, after which nothing of it comes

	mu    sync.Mutex // protects the fields below
	live  map[string]struct{}
	order []string // of their beginning; some may have ended
}

func newConversations(over func(id string)) *conversations {
	return &conversations{over: over, live: make(map[string]struct{})}
}

// Generate begins a session. Its id can't be guessed.
func (c *conversations) Generate() string {
	id := rand.Text()
	c.mu.Lock()
	c.live[id] = struct{}{}
	c.order = append(c.order, id)
	var oldest string
	for len(c.live) > maxConversations || len(c.order) > 2*maxConversations {
		oldest = c.order[0]
		c.order = c.order[1:]
		if _, ok := c.live[oldest]; ok && len(c.live) > maxConversations {
			break
		}
		oldest = ""
	}
	c.mu.Unlock()
	if oldest != "" {
		_, _ = c.Terminate(oldest)
	}
	return id
}

// Validate refuses what isn't a session.
func (c *conversations) Validate(id string) (terminated bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.live[id]; !ok {
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

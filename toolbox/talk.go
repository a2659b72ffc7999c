package toolbox

import (
	"slices"
	"sync"

	"github.com/mcppool/mcppool"
)

// talks are what is remembered of conversations with a thread.
type talks struct {
	mu      sync.Mutex // protects the fields below
	byScope map[string]*talk
	clock   uint64 // counts uses
}

// talk is what is remembered of one conversation.
type talk struct {
	used     uint64
	sessions map[string]string // by server: the id of the session that served it last
	found    []string          // names of tools that a search has found, the latest last
}

const (
	maxTalks    = 4096 // conversations; beyond it the least recently used one goes
	maxSessions = 1024 // servers of one conversation
)

// useLocked finds or makes what is remembered of a conversation. The caller must hold
// t.mu.
func (t *talks) useLocked(scope string) *talk {
	t.clock++
	c := t.byScope[scope]
	if c == nil {
		if t.byScope == nil {
			t.byScope = make(map[string]*talk)
		}
		if len(t.byScope) >= maxTalks {
			t.evictLocked()
		}
		c = new(talk)
		t.byScope[scope] = c
	}
	c.used = t.clock
	return c
}

// evictLocked forgets the eighth of the conversations that were unused for the longest
// time: looking for one of them costs as much. The caller must hold t.mu.
func (t *talks) evictLocked() {
	uses := make([]uint64, 0, len(t.byScope))
	for _, c := range t.byScope {
		uses = append(uses, c.used)
	}
	slices.Sort(uses)
	limit := uses[len(uses)/8]
	for scope, c := range t.byScope {
		if c.used <= limit {
			delete(t.byScope, scope)
		}
	}
}

// served notes which session a call of a server went to, and reports whether the
// conversation had another one before.
func (t *talks) served(server string, from mcppool.Origin) (replaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.useLocked(from.Scope)
	last := c.sessions[server]
	if last == "" && len(c.sessions) >= maxSessions {
		return false
	}
	if c.sessions == nil {
		c.sessions = make(map[string]string)
	}
	c.sessions[server] = from.SessionID
	return last != "" && last != from.SessionID
}

func (t *talks) forget(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byScope, scope)
}

// Package current knows what a session is busy with.
package current

import (
	"sync"
	"time"
)

// Requests are those under way. The zero value has none. It is safe for concurrent use.
type Requests struct {
	mu    sync.Mutex // protects the fields below
	n     int
	tool  string // that is being called, of several the last; empty when none is
	since time.Duration
}

// Begin is the beginning of a request; tool is empty when it calls none.
func (r *Requests) Begin(tool string, now time.Duration) {
	r.mu.Lock()
	r.n++
	if tool != "" {
		r.tool, r.since = tool, now
	}
	r.mu.Unlock()
}

// End is the end of one.
func (r *Requests) End() {
	r.mu.Lock()
	if r.n--; r.n == 0 {
		r.tool, r.since = "", 0
	}
	r.mu.Unlock()
}

// UnderWay reports whether there are any.
func (r *Requests) UnderWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n > 0
}

// Tool is the tool that is being called, and since when.
func (r *Requests) Tool() (tool string, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tool, r.since
}

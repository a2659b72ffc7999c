// Package guests has the goroutines that run handlers of the host on behalf of
// somebody who doesn't wait for their end, such as a call whose ctx has ended. The
// close of the connection does.
package guests

import (
	"runtime/debug"
	"sync"
)

// Group is the goroutines of one connection. Its zero value is ready.
type Group struct {
	// OnPanic is called with what a function panicked with. It must not panic itself.
	OnPanic func(v any, stack []byte)

	mu      sync.Mutex // protects the fields below
	running int
	closed  chan struct{} // nil before Close; closed once nothing runs after it
}

// Go runs f, and after it in every case after, on a goroutine of the group. It
// reports false and runs nothing once Close has been called.
func (g *Group) Go(f, after func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return false
	}
	g.running++
	go func() {
		defer g.leave()
		defer after()
		defer func() {
			if v := recover(); v != nil {
				g.OnPanic(v, debug.Stack())
			}
		}()
		f()
	}()
	return true
}

func (g *Group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed != nil && g.running == 0 {
		close(g.closed)
	}
}

// Close lets nothing new begin, and returns a channel that is closed once nothing
// runs. It is called once.
func (g *Group) Close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
	if g.running == 0 {
		close(g.closed)
	}
	return g.closed
}

// Package progress hands the progress of calls to whoever made them.
package progress

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Handlers are those of the calls of one connection that are under way, by token. No
// token is used twice, so that progress which comes late reaches nobody. The zero value
// is ready.
type Handlers struct {
	mu   sync.Mutex // protects the fields below, and those of the handlers
	of   map[string]*handler
	last uint64
}

type handler struct {
	call    func(mcp.ProgressNotification)
	running chan struct{} // closed when it returns; nil while it doesn't run
}

// Add has f called with the progress of a call, and returns the token that is to be sent
// with it.
func (p *Handlers) Add(f func(mcp.ProgressNotification)) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	token = "p" + strconv.FormatUint(p.last, 10)
	if p.of == nil {
		p.of = make(map[string]*handler)
	}
	p.of[token] = &handler{call: f}
	return token
}

// Remove takes a handler away. It isn't called any more then: one that runs is waited
// for, since what it writes is its caller's, who goes on.
func (p *Handlers) Remove(token string) {
	p.mu.Lock()
	running := p.of[token].running
	delete(p.of, token)
	p.mu.Unlock()
	if running != nil {
		<-running
	}
}

// Deliver calls the handler of a notification, whose params are given. It is called by one
// goroutine at a time.
func (p *Handlers) Deliver(params json.RawMessage) {
	n := mcp.ProgressNotification{}
	n.Method = string(mcp.MethodNotificationProgress)
	if json.Unmarshal(params, &n.Params) != nil {
		return
	}
	token, _ := n.Params.ProgressToken.(string)
	p.mu.Lock()
	h := p.of[token]
	if h == nil {
		p.mu.Unlock()
		return
	}
	running := make(chan struct{})
	h.running = running
	p.mu.Unlock()
	defer func() { // also when it panics
		p.mu.Lock()
		h.running = nil
		p.mu.Unlock()
		close(running)
	}()
	h.call(n)
}

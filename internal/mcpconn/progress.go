package mcpconn

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// progressHandlers are those of the calls under way, by token. No token is used
// twice on a connection, so that progress which comes late reaches nobody.
type progressHandlers struct {
	mu   sync.Mutex // protects the fields below, and those of the handlers
	of   map[string]*progressHandler
	last uint64
}

type progressHandler struct {
	call    func(mcp.ProgressNotification)
	running chan struct{} // closed when it returns; nil while it doesn't run
}

func (p *progressHandlers) add(f func(mcp.ProgressNotification)) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	token = "p" + strconv.FormatUint(p.last, 10)
	if p.of == nil {
		p.of = make(map[string]*progressHandler)
	}
	p.of[token] = &progressHandler{call: f}
	return token
}

// remove takes a handler away. It isn't called any more then: one that runs is waited
// for, since what it writes is its caller's, who goes on.
func (p *progressHandlers) remove(token string) {
	p.mu.Lock()
	running := p.of[token].running
	delete(p.of, token)
	p.mu.Unlock()
	if running != nil {
		<-running
	}
}

// deliver calls the handler of a notification. It is called by one goroutine.
func (p *progressHandlers) deliver(params json.RawMessage) {
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

package streams

import (
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/rpc"
)

// How long a stream that the server has ended is left before it is opened again: each
// time twice as long, and as at first when it had held for the longest of these.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// WatchTools has the server tell when its tools change, which older servers do
// unasked, for as long as the connection lives. Where a stream was renewed, renewed
// is called: what changed meanwhile wasn't told. A server that refuses is left alone.
func (t *Set) WatchTools(renewed func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.work.Go(func() { t.watchTools(renewed) })
}

func (t *Set) watchTools(renewed func()) {
	pause := firstPause
	for again := false; ; again = true {
		begun := time.Now()
		t.mu.Lock()
		s := t.openLocked(mcp.SubscriptionFilter{ToolsListChanged: true})
		t.mu.Unlock()
		select {
		case <-s.acked:
			if again {
				renewed()
			}
			<-s.ended
		case <-s.ended:
		}
		var refused *rpc.Error
		if errors.As(s.err, &refused) && refused.Code == rpc.CodeMethodNotFound {
			return
		}
		if time.Since(begun) > longestPause {
			pause = firstPause
		}
		select {
		case <-t.life.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

package toolbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// flight is one listing under way, and the next one where its outcome is outdated at
// once. It belongs to the box: it goes on when those who wait for it have left, so that
// the next to come find it done.
type flight struct {
	done chan struct{} // closed behind the outcome

	// The fields below are protected by listings.mu.
	outdated bool // the tools changed after it had asked
	forced   bool // somebody wants them as they are now
	noticed  bool // it was begun since the server said that its tools have changed
}

const (
	// settle is how long a flight waits before it asks a server that has said that its
	// tools have changed: servers say so once for each tool.
	settle = 50 * time.Millisecond
	// A server that says so though they haven't is believed less and less often.
	minQuiet = time.Second
	maxQuiet = time.Hour
)

// renewLocked returns the flight that renews l, which it begins where there is none; nil
// when l is current and does. The caller must hold ls.mu.
func (ls *listings) renewLocked(values context.Context, l *listing, anew bool, now time.Time) *flight {
	switch {
	case l.flight != nil:
		l.flight.forced = l.flight.forced || anew && l.tools != nil
		return ls.worthWaitingLocked(l, anew)
	case !anew && l.currentLocked(ls.opts, now):
		return nil
	}
	ls.beginLocked(values, l)
	return ls.worthWaitingLocked(l, anew)
}

// worthWaitingLocked returns l's flight if a caller may wait for it: for news of a change,
// but not for the retry of a server that has failed or the renewal of what is old.
func (ls *listings) worthWaitingLocked(l *listing, anew bool) *flight {
	if f := l.flight; f != nil && (anew || l.tools == nil || l.tools.err == nil && f.noticed) {
		return f
	}
	return nil
}

// beginLocked begins a flight, unless the box is closed. The caller must hold ls.mu.
func (ls *listings) beginLocked(values context.Context, l *listing) {
	if ls.life.Err() != nil {
		if l.tools == nil {
			l.tools = &toolList{err: ErrBoxClosed}
		}
		return
	}
	f := &flight{done: make(chan struct{}), noticed: l.stale}
	l.flight = f
	ls.wg.Add(1)
	go ls.fly(context.WithoutCancel(values), l, f)
}

// fly lists the tools of l's server and publishes them.
func (ls *listings) fly(ctx context.Context, l *listing, f *flight) {
	defer ls.wg.Done()
	defer close(f.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ls.life, cancel)()
	for again := true; again; {
		ls.mu.Lock()
		noticed := f.noticed
		ls.mu.Unlock()
		if noticed {
			select {
			case <-time.After(settle):
			case <-ctx.Done():
			}
		}
		ls.mu.Lock()
		l.stale, f.outdated, f.forced = false, false, false
		ls.mu.Unlock()
		again = ls.publish(l, f, ls.list(ctx, l))
	}
}

// list asks for the tools. A server that knows no tools has none.
func (ls *listings) list(ctx context.Context, l *listing) *toolList {
	timeout := ls.opts.listTimeout()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	release, err := ls.takeSlot(ctx)
	if err == nil {
		defer release()
		var list *mcppool.ToolList
		for range 2 {
			list, err = ls.caller.ToolList(ctx, l.server, mcppool.Borrow{Scope: l.scope})
			if err == nil {
				return &toolList{tools: list.Tools, skipped: list.Skipped}
			}
			if !errors.Is(err, mcppool.ErrServerClosed) {
				break // else the session that was asked may have ended with its own scope
			}
		}
	}
	switch {
	case errors.Is(err, mcp.ErrMethodNotFound):
		return &toolList{tools: []mcp.Tool{}}
	case ctx.Err() == context.DeadlineExceeded:
		err = &listTimeoutError{after: timeout, err: err}
	}
	return &toolList{err: err}
}

// takeSlot waits until few enough listings are under way. A slot is given back after a
// while even if its holder goes on, so that servers that hang keep nobody waiting.
func (ls *listings) takeSlot(ctx context.Context) (release func(), err error) {
	select {
	case ls.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	free := sync.OnceFunc(func() { <-ls.slots })
	late := time.AfterFunc(busyStart, free)
	return func() {
		late.Stop()
		free()
	}, nil
}

// publish makes the outcome of a flight known, and reports whether it is to ask again.
func (ls *listings) publish(l *listing, f *flight, got *toolList) (again bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.life.Err() != nil {
		l.flight = nil
		if l.tools == nil {
			l.tools = &toolList{err: ErrBoxClosed}
		}
		return false // that says nothing of the server
	}
	last := l.tools
	same := last != nil && last.err == nil && got.err == nil && reflect.DeepEqual(last, got)
	l.at = time.Now()
	l.fails++
	if got.err == nil {
		l.fails = 0
	} else if last != nil {
		got.tools, got.skipped = last.tools, last.skipped
	}
	if !same { // else it stays the very same for those who compare
		l.tools = got
	}
	if f.noticed {
		l.quiet = nextQuiet(l.quiet, same)
	}
	again = f.forced || f.outdated && l.quiet == 0
	f.noticed = f.outdated && !f.forced
	l.stale = f.outdated && !again
	if !again {
		l.flight = nil
	}
	return again
}

func nextQuiet(last time.Duration, same bool) time.Duration {
	if !same {
		return 0
	}
	return min(max(2*last, minQuiet), maxQuiet)
}

// changed renews the tools of the servers with this label: those in general, and those of
// the scope whose session said that they have changed.
func (ls *listings) changed(label, scope string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	for _, same := range ls.byKey {
		for _, l := range same {
			if !l.isOf(label) || l.scope != "" && l.scope != scope {
				continue
			}
			l.varies = l.varies || l.scope == "" && scope != ""
			ls.noticeLocked(l, now)
		}
	}
}

// replaced renews the tools of a scope whose session is another one.
func (ls *listings) replaced(server *mcppool.Server, scope string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.lookLocked(ls.hash(server), server, scope); l != nil && scope != "" {
		ls.noticeLocked(l, time.Now())
	}
}

func (ls *listings) noticeLocked(l *listing, now time.Time) {
	l.stale = true
	switch {
	case l.flight != nil:
		l.flight.outdated = true
	case l.tools != nil && l.tools.err == nil && !l.currentLocked(ls.opts, now):
		ls.beginLocked(context.Background(), l)
	}
}

// listTimeoutError says how long a server was waited for.
type listTimeoutError struct {
	after time.Duration
	err   error
}

func (e *listTimeoutError) Error() string {
	return fmt.Sprintf("toolbox: the tools were not listed within %s", e.after)
}

func (e *listTimeoutError) Unwrap() error { return e.err }

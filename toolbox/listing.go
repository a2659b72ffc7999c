package toolbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// listings keeps the tools that servers have listed, by configuration: what a
// server offers doesn't depend on the conversation.
type listings struct {
	caller Caller
	opts   *Options
	seed   maphash.Seed

	mu    sync.Mutex // protects the fields below, and those of listing and flight that say so
	byKey map[uint64][]*listing
	count int
}

// maxListings bounds what is remembered of configurations; beyond it the least
// recently used one goes.
const maxListings = 1024

// listing is what is known of one configuration's tools.
type listing struct {
	server mcppool.Server // never changes
	label  string         // never changes
	key    uint64         // never changes

	// The fields below are protected by listings.mu.
	tools  *toolList // nil before the first listing has ended
	stale  bool      // tools have changed since they were listed
	flight *flight   // the listing under way
	used   time.Time
}

// toolList is what one listing gave. It never changes.
type toolList struct {
	tools []mcp.Tool
	err   error
	at    time.Time
}

// flight is one listing under way, for all that wait for it. The last to leave
// before it has ended aborts it and waits for its end.
type flight struct {
	done   chan struct{} // closed behind result
	cancel context.CancelFunc
	result *toolList

	// The fields below are protected by listings.mu.
	waiters  int
	outdated bool // the tools changed after it began
}

func newListings(caller Caller, opts *Options) *listings {
	return &listings{caller: caller, opts: opts, seed: maphash.MakeSeed(), byKey: make(map[uint64][]*listing)}
}

// get gives the tools of a server, from the cache or by asking it. A failure is
// in the list.
func (ls *listings) get(ctx context.Context, server *mcppool.Server) *toolList {
	now := time.Now()
	ls.mu.Lock()
	l := ls.findLocked(server, now)
	if l.currentLocked(ls.opts, now) {
		defer ls.mu.Unlock()
		return l.tools
	}
	f := ls.joinLocked(ctx, l)
	ls.mu.Unlock()

	select {
	case <-f.done:
		ls.leave(l, f)
		return f.result
	case <-ctx.Done():
		ls.leave(l, f)
		return &toolList{err: ctx.Err()}
	}
}

// cached gives the tools of a server if they are known, whatever their age.
func (ls *listings) cached(server *mcppool.Server) *toolList {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	key := ls.hash(server)
	for _, l := range ls.byKey[key] {
		if l.server.Equal(*server) && l.tools != nil && l.tools.err == nil {
			return l.tools
		}
	}
	return nil
}

// currentLocked reports whether the tools, or the failure, need no new listing.
// The caller must hold listings.mu.
func (l *listing) currentLocked(opts *Options, now time.Time) bool {
	if l.tools == nil || l.stale {
		return false
	}
	age := now.Sub(l.tools.at)
	if l.tools.err != nil {
		return age < opts.coolOff()
	}
	return opts.listMaxAge() < 0 || age < opts.listMaxAge()
}

// findLocked finds or makes the listing of a configuration. The caller must
// hold ls.mu.
func (ls *listings) findLocked(server *mcppool.Server, now time.Time) *listing {
	key := ls.hash(server)
	for _, l := range ls.byKey[key] {
		if l.server.Equal(*server) {
			l.used = now
			return l
		}
	}
	l := &listing{server: *server, label: server.String(), key: key, used: now}
	if ls.count >= maxListings {
		ls.evictLocked()
	}
	ls.byKey[key] = append(ls.byKey[key], l)
	ls.count++
	return l
}

// evictLocked forgets the listing that was unused for the longest time, but
// none under way. The caller must hold ls.mu.
func (ls *listings) evictLocked() {
	var oldest *listing
	for _, same := range ls.byKey {
		for _, l := range same {
			if l.flight == nil && (oldest == nil || l.used.Before(oldest.used)) {
				oldest = l
			}
		}
	}
	if oldest == nil {
		return // all are being asked, and all of them are waited for
	}
	kept := ls.byKey[oldest.key][:0:0]
	for _, l := range ls.byKey[oldest.key] {
		if l != oldest {
			kept = append(kept, l)
		}
	}
	if ls.byKey[oldest.key] = kept; len(kept) == 0 {
		delete(ls.byKey, oldest.key)
	}
	ls.count--
}

// joinLocked counts the caller as waiting for the listing under way, and begins
// one when there is none. The caller must hold ls.mu.
func (ls *listings) joinLocked(ctx context.Context, l *listing) *flight {
	if l.flight == nil {
		f := &flight{done: make(chan struct{})}
		// Others may wait for it when this caller has gone.
		ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		l.flight = f
		go ls.ask(ctx, l, f)
	}
	l.flight.waiters++
	return l.flight
}

// leave takes the caller off the listing. The last one waits for its end, so
// that no listing outlives its callers.
func (ls *listings) leave(l *listing, f *flight) {
	ls.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	if last && l.flight == f {
		l.flight = nil // nobody joins what is being aborted
	}
	ls.mu.Unlock()
	if last {
		f.cancel()
		<-f.done
	}
}

// ask lists the tools of l's server and publishes them.
func (ls *listings) ask(ctx context.Context, l *listing, f *flight) {
	defer close(f.done)
	timeout := ls.opts.listTimeout()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	tools, err := ls.caller.ListTools(ctx, l.server, mcppool.Borrow{})
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = &listTimeoutError{after: timeout, err: err}
	}
	f.result = &toolList{tools: tools, err: err, at: time.Now()}

	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.flight != f {
		return // aborted: that says nothing of the server
	}
	l.flight = nil
	l.tools = f.result
	l.stale = f.outdated
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

// changed makes the listings of every server with this label be renewed.
func (ls *listings) changed(label string) {
	ls.renew(func(l *listing) bool { return l.label == label })
}

// renew makes listings be asked anew, those under way included.
func (ls *listings) renew(which func(*listing) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, same := range ls.byKey {
		for _, l := range same {
			if !which(l) {
				continue
			}
			l.stale = true
			if l.flight != nil {
				l.flight.outdated = true
			}
		}
	}
}

// hash is for finding a configuration; Server.Equal says whether it is the one.
// Pairs are added up, so that their order doesn't count.
func (ls *listings) hash(s *mcppool.Server) uint64 {
	var h maphash.Hash
	h.SetSeed(ls.seed)
	writeFrame(&h, s.Command)
	writeFrame(&h, s.Dir)
	writeFrame(&h, s.URL)
	for _, a := range s.Args {
		writeFrame(&h, a)
	}
	sum := h.Sum64()
	for _, m := range []map[string]string{s.Env, s.Header} {
		for name, value := range m {
			h.Reset()
			writeFrame(&h, name)
			writeFrame(&h, value)
			sum += h.Sum64()
		}
	}
	return sum
}

// writeFrame adds a text behind its length, so that no two lists of texts are
// the same bytes.
func writeFrame(h *maphash.Hash, s string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(s)))
	_, _ = h.Write(length[:])
	_, _ = h.WriteString(s)
}

// current gives what is known of the entries' tools and needs no new listing;
// nil where that isn't so.
func (ls *listings) current(entries []Entry) []*toolList {
	lists := make([]*toolList, len(entries))
	now := time.Now()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range entries {
		if entries[i].Disabled {
			continue
		}
		if l := ls.findLocked(&entries[i].Server, now); l.currentLocked(ls.opts, now) {
			lists[i] = l.tools
		}
	}
	return lists
}

package toolbox

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// listings keeps the tools that servers have listed: by configuration, and besides by
// scope for those whose sessions differ in what they offer.
type listings struct {
	caller Caller
	opts   *Options
	seed   maphash.Seed
	slots  chan struct{} // taken by listings that may start a server

	life context.Context // of the flights
	end  context.CancelFunc
	wg   sync.WaitGroup // of the flights; added to only under mu, and never once life has ended

	mu    sync.Mutex // protects the fields below, and those of listing and flight that say so
	byKey map[uint64][]*listing
	count int
}

const (
	// maxListings bounds what is remembered; beyond it the least recently used one goes.
	maxListings = 1024
	// listAtOnce bounds the listings that start a server at a time, so that many
	// servers don't all become late together.
	listAtOnce = 8
	// busyStart is how long a start may keep others waiting: one that takes longer waits
	// for something itself.
	busyStart = 10 * time.Second
)

// listing is what is known of the tools of one configuration, in one scope or, with an
// empty one, in general.
type listing struct {
	server mcppool.Server // never changes, nor do the next two
	scope  string
	key    uint64

	// The fields below are protected by listings.mu.
	labels []string  // by which the pool may call the server
	tools  *toolList // nil before the first listing has ended
	at     time.Time // when it ended
	stale  bool      // the server said that its tools have changed
	fails  int       // listings that failed in a row
	quiet  time.Duration
	varies bool // some session has changed its own tools
	flight *flight
	used   time.Time
}

// toolList is the outcome of a listing. It never changes. One that failed has the tools
// of the last one that didn't.
type toolList struct {
	tools   []mcp.Tool
	skipped []mcppool.SkippedTool
	err     error
}

// ErrListing says that a server's tools aren't known yet: it is still being asked.
var ErrListing = errors.New("toolbox: the tools are still being listed")

func newListings(caller Caller, opts *Options) *listings {
	ls := &listings{
		caller: caller, opts: opts, seed: maphash.MakeSeed(),
		slots: make(chan struct{}, listAtOnce), byKey: make(map[uint64][]*listing),
	}
	ls.life, ls.end = context.WithCancel(context.Background())
	return ls
}

// close ends the flights and waits for them. No more begin.
func (ls *listings) close() {
	ls.mu.Lock()
	ls.end()
	ls.mu.Unlock()
	ls.wg.Wait()
}

// ask says whose tools are wanted.
type ask struct {
	scope string // empty for the tools in general
	anew  bool   // what is known doesn't do
}

// of returns what is known of the entries' tools, nil for those that are disabled. Where
// nothing is known yet it waits, for as long as ListWait and ctx allow; for news of a
// change it waits for a moment.
func (ls *listings) of(ctx context.Context, entries []Entry, want ask) []*toolList {
	found := make([]*listing, len(entries))
	flights := make([]*flight, len(entries))
	lists := make([]*toolList, len(entries))
	now := time.Now()
	ls.mu.Lock()
	for i := range entries {
		if !entries[i].usable() {
			continue
		}
		server := entries[i].server()
		found[i] = ls.findLocked(&server, want.scope, now)
		flights[i] = ls.renewLocked(ctx, found[i], want.anew, now)
		lists[i] = found[i].tools
	}
	ls.mu.Unlock()
	if !slices.ContainsFunc(flights, func(f *flight) bool { return f != nil }) {
		return lists
	}

	long, stopLong := bounded(ctx, ls.opts.listWait())
	defer stopLong()
	news, stopNews := bounded(long, newsWait)
	defer stopNews()
	for i, f := range flights {
		if f == nil {
			continue
		}
		enough := long.Done()
		if lists[i] != nil && !want.anew {
			enough = news.Done()
		}
		lists[i] = ls.await(ctx, found[i], f, enough)
	}
	return lists
}

// newsWait is how long Tools waits for the tools of a server that has just said that
// they have changed: it is alive, and answers at once if it ever does.
const newsWait = time.Second

func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// await returns what is known of l once f has ended, or enough is over, which ends no
// later than the caller's ctx.
func (ls *listings) await(ctx context.Context, l *listing, f *flight, enough <-chan struct{}) *toolList {
	select {
	case <-f.done:
	case <-enough:
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case l.tools != nil:
		return l.tools
	case ctx.Err() != nil:
		return &toolList{err: errors.Join(ErrListing, ctx.Err())}
	default:
		return &toolList{err: ErrListing}
	}
}

// get returns the tools of a server as they are known, or asks for them. A failure is in
// the list.
func (ls *listings) get(ctx context.Context, server *mcppool.Server) *toolList {
	now := time.Now()
	ls.mu.Lock()
	l := ls.findLocked(server, "", now)
	if l.tools != nil && l.tools.tools != nil {
		defer ls.mu.Unlock()
		return l.tools
	}
	f := ls.renewLocked(ctx, l, l.tools == nil, now)
	if f == nil {
		defer ls.mu.Unlock()
		return l.tools
	}
	ls.mu.Unlock()
	return ls.await(ctx, l, f, ctx.Done())
}

// cached returns a tool of a server as the scope sees it, nil if it isn't known.
func (ls *listings) cached(server *mcppool.Server, scope string, is func(*mcp.Tool) bool) *mcp.Tool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var general *mcp.Tool
	for _, l := range ls.byKey[ls.hash(server)] {
		if l.tools == nil || l.scope != "" && l.scope != scope || !l.server.Equal(*server) {
			continue
		}
		i := findTool(l.tools.tools, is)
		switch {
		case i < 0:
		case l.scope != "":
			return &l.tools.tools[i]
		default:
			general = &l.tools.tools[i]
		}
	}
	return general
}

// currentLocked reports whether the tools, or the failure, need no new listing. A server
// that keeps failing is asked less and less often. The caller must hold listings.mu.
func (l *listing) currentLocked(opts *Options, now time.Time) bool {
	if l.tools == nil {
		return false
	}
	age := now.Sub(l.at)
	switch {
	case l.tools.err != nil:
		return age < opts.coolOff()<<min(max(l.fails-1, 0), maxCoolOffDoublings)
	case l.stale:
		return age < l.quiet
	default:
		return opts.listMaxAge() < 0 || age < opts.listMaxAge()
	}
}

const maxCoolOffDoublings = 4

// findLocked finds or makes the listing of a configuration: that of a scope only where
// the sessions are known to differ. The caller must hold ls.mu.
func (ls *listings) findLocked(server *mcppool.Server, scope string, now time.Time) *listing {
	key := ls.hash(server)
	general := ls.lookLocked(key, server, "")
	if general == nil {
		general = ls.addLocked(&listing{server: *server, labels: []string{server.String()}, key: key})
	}
	general.used = now
	if server.Name != "" && !slices.Contains(general.labels, server.String()) && len(general.labels) < maxLabels {
		general.labels = append(general.labels, server.String()) // another entry of the same configuration
	}
	if scope == "" || !general.varies {
		return general
	}
	own := ls.lookLocked(key, server, scope)
	if own == nil {
		own = ls.addLocked(&listing{server: *server, scope: scope, labels: general.labels, key: key})
	}
	own.used = now
	return own
}

// maxLabels bounds under how many names one configuration is known.
const maxLabels = 16

// isOf reports whether a server of that label may be l's. A name may have digits behind
// it, while another server has it too. The caller must hold listings.mu.
func (l *listing) isOf(label string) bool {
	return slices.ContainsFunc(l.labels, func(own string) bool {
		digits, numbered := strings.CutPrefix(label, own+"-")
		return label == own || numbered && !strings.Contains(digits, "-")
	})
}

func (ls *listings) lookLocked(key uint64, server *mcppool.Server, scope string) *listing {
	for _, l := range ls.byKey[key] {
		if l.scope == scope && l.server.Equal(*server) {
			return l
		}
	}
	return nil
}

func (ls *listings) addLocked(l *listing) *listing {
	if ls.count >= maxListings {
		ls.evictLocked()
	}
	ls.byKey[l.key] = append(ls.byKey[l.key], l)
	ls.count++
	return l
}

// evictLocked forgets the listing that was unused for the longest time, but none under
// way. The caller must hold ls.mu.
func (ls *listings) evictLocked() {
	var oldest *listing
	for _, same := range ls.byKey {
		for _, l := range same {
			if l.flight == nil && (oldest == nil || l.used.Before(oldest.used)) {
				oldest = l
			}
		}
	}
	if oldest != nil { // else all are being asked
		ls.dropLocked(func(l *listing) bool { return l == oldest })
	}
}

// dropLocked forgets listings. The caller must hold ls.mu.
func (ls *listings) dropLocked(which func(*listing) bool) {
	for key, same := range ls.byKey {
		var kept []*listing
		for _, l := range same {
			if !which(l) {
				kept = append(kept, l)
			}
		}
		ls.count -= len(same) - len(kept)
		if ls.byKey[key] = kept; len(kept) == 0 {
			delete(ls.byKey, key)
		}
	}
}

// forget drops what is known of a scope alone.
func (ls *listings) forget(scope string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.dropLocked(func(l *listing) bool { return l.scope == scope && scope != "" })
}

// hash is for finding a configuration; Server.Equal says whether it is the one. Pairs are
// added up, so that their order doesn't count.
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

// writeFrame adds a text behind its length, so that no two lists of texts are the same
// bytes.
func writeFrame(h *maphash.Hash, s string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(s)))
	_, _ = h.Write(length[:])
	_, _ = h.WriteString(s)
}

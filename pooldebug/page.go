// Package pooldebug is a live page about an mcppool: its sessions with a timeline
// of each, its limits, counters, latencies, and what happened lately.
//
//	page := pooldebug.New(nil)
//	pool, err := mcppool.New(&mcppool.Options{Trace: page.Trace()})
//	page.Attach(pool)
//	http.Handle("/debug/mcppool", page)
//
// The page is one handler that works at any path: everything it serves is at
// that path, told apart by the query. It needs nothing from elsewhere, and what
// servers put in names and errors is shown as text.
//
// It has no login. Mount it behind the one that the program has, or on an
// address of this machine only.
package pooldebug

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcppool/mcppool"
)

// Options are the settings of a page. Zero and negative numbers mean the default
// given with them.
type Options struct {
	// Title is the heading of the page; default "mcppool".
	Title string
	// Actions adds buttons that close a session, the sessions of a server, or
	// all idle ones, and answers the requests behind them: of the page itself, not
	// of other sites' pages. Off by default: whoever sees the page may then end calls.
	Actions bool
	// Window is how far back timelines, plots and latencies reach; default 5
	// minutes.
	Window time.Duration
	// Interval is how often an open page is updated; default 1 second. Nothing
	// is done for pages that nobody has open.
	Interval time.Duration

	// MaxSessions is that of the pool's options, to be shown beside the number of
	// sessions kept: 0 is the pool's default of 32, negative is no limit.
	MaxSessions int

	// Hosts are the names, besides localhost, by which a page on a loopback
	// address may be asked for. All others are refused, since a foreign site can
	// let its name point to this machine and pass for this page (DNS rebinding). A
	// proxy on this machine that passes on its clients' Host needs its name here.
	Hosts []string
}

const (
	defaultTitle       = "mcppool"
	defaultWindow      = 5 * time.Minute
	defaultInterval    = time.Second
	defaultMaxSessions = 32
)

// Page shows a pool, and is an http.Handler. What it remembers is bounded, whatever
// the pool does. It has no goroutine of its own, so that it needs no closing. It
// is safe for concurrent use.
type Page struct {
	opts    Options // with the defaults filled in; never changes
	pool    atomic.Pointer[mcppool.Pool]
	viewers atomic.Int32
	origin  *http.CrossOriginProtection
	begun   time.Time

	mu       sync.Mutex // protects the fields below; held for moments only
	series   series
	tracks   map[string]*track // by session: those of open, and of closed
	open     int               // tracks of open sessions
	closed   []*track          // recently closed ones, the oldest first
	running  map[string]int64  // by session that is being connected: since when its process runs
	backoffs map[string]mcppool.BackoffState
	lastSeq  uint64
	calls    ring[event]
	output   output
	events   ring[event] // all other ones
}

// New makes a page; nil options are the defaults. It shows nothing until a pool
// has been given to it by [Page.Trace] and [Page.Attach].
func New(opts *Options) *Page {
	p := &Page{
		begun:    time.Now(),
		origin:   http.NewCrossOriginProtection(),
		tracks:   make(map[string]*track),
		running:  make(map[string]int64),
		backoffs: make(map[string]mcppool.BackoffState),
		calls:    ring[event]{max: maxEvents},
		output:   output{lines: ring[event]{max: maxLines}},
		events:   ring[event]{max: maxEvents},
	}
	if opts != nil {
		p.opts = *opts
		p.opts.Hosts = slices.Clone(opts.Hosts)
	}
	if p.opts.Title == "" {
		p.opts.Title = defaultTitle
	}
	if p.opts.Window <= 0 {
		p.opts.Window = defaultWindow
	}
	if p.opts.Interval <= 0 {
		p.opts.Interval = defaultInterval
	}
	if p.opts.MaxSessions == 0 {
		p.opts.MaxSessions = defaultMaxSessions
	}
	p.series.width = max(1, int64(p.opts.Window)/slots)
	return p
}

// Attach says which pool the page shows: the one that was made with [Page.Trace].
// Before it, the page says that there is none.
func (p *Page) Attach(pool *mcppool.Pool) { p.pool.Store(pool) }

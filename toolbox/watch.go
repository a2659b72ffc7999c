package toolbox

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcppool/mcppool"
)

// Closer closes the sessions of a server, as [mcppool.Pool] does.
type Closer interface {
	CloseServer(mcppool.Server)
}

// WatchOptions are the settings of [WatchConfig]. Nil means the defaults.
type WatchOptions struct {
	// Config says how the files are read.
	Config *ConfigOptions
	// Interval is how often the files are looked at; default 2 seconds. A
	// negative one leaves it to [Watched.Reload].
	Interval time.Duration
	// OnReload is told of every change of the files. It runs on the goroutine
	// that watches, or that calls [Watched.Reload], and must call neither
	// Close nor Reload.
	OnReload func(Reload)
}

// Reload is what became of a change of the files.
type Reload struct {
	// Err is why the new files don't count; what the last good ones said still
	// does. Nil when the change counts.
	Err error
	// Warnings name what was read over.
	Warnings []ConfigWarning
	// Closed names the servers, by ID, that were changed, disabled or removed,
	// and whose sessions were closed.
	Closed []string
}

const defaultWatchInterval = 2 * time.Second

// Watched is a catalog of mcpServers files that follows their changes. It is
// made by [WatchConfig] and must be closed. It is safe for concurrent use.
type Watched struct {
	closer Closer
	opts   WatchOptions
	files  []string
	seed   maphash.Seed
	stop   context.CancelFunc
	wg     sync.WaitGroup

	current atomic.Pointer[Static]

	reloading chan struct{} // holds one token; who has it may reload
	seen      uint64        // hash of the files that were read last; the token's holder's

	mu  sync.Mutex // protects the field below
	err error      // of the files as they are
}

// WatchConfig reads files as [LoadConfig] does and looks at them again and
// again. When they change, the sessions of the servers that were changed,
// disabled or removed are closed, and only those. Files that can't be read or
// parsed change nothing but Err. It fails when the files are broken at the
// start.
//
// It reads the files each time rather than trusting their times, which miss a
// change within the clock's tick; a directory's events would miss files behind
// symbolic links and on network file systems.
func WatchConfig(pool Closer, opts *WatchOptions, files ...string) (*Watched, error) {
	w := &Watched{closer: pool, files: slices.Clone(files), seed: maphash.MakeSeed(), reloading: make(chan struct{}, 1)}
	if opts != nil {
		w.opts = *opts
	}
	read := readFiles(w.files)
	c, err := mergeConfigs(w.opts.Config, read)
	if err != nil {
		return nil, err
	}
	w.seen = w.hash(read)
	w.current.Store(c.Static())
	if w.opts.OnReload != nil && len(c.Warnings) > 0 {
		w.opts.OnReload(Reload{Warnings: c.Warnings})
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.reloading <- struct{}{}
	if interval := orDefault(w.opts.Interval, defaultWatchInterval); interval > 0 {
		w.wg.Go(func() { w.watch(ctx, interval) })
	}
	return w, nil
}

// Close ends the watching. The catalog stays as it is.
func (w *Watched) Close() error {
	w.stop()
	w.wg.Wait()
	return nil
}

// Err says what is wrong with the files as they are now; nil when they count.
func (w *Watched) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Lookup finds one server.
func (w *Watched) Lookup(ctx context.Context, id string) (Entry, error) {
	return w.current.Load().Lookup(ctx, id)
}

// List gives the enabled servers by ID.
func (w *Watched) List(ctx context.Context) ([]Entry, error) { return w.current.Load().List(ctx) }

// Reload looks at the files now, and gives Err.
func (w *Watched) Reload() error {
	<-w.reloading
	defer func() { w.reloading <- struct{}{} }()
	w.look()
	return w.Err()
}

func (w *Watched) watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = w.Reload() // kept for Err
		}
	}
}

// look reads the files and takes over what has changed. The caller holds the
// token of reloading.
func (w *Watched) look() {
	read := readFiles(w.files)
	hash := w.hash(read)
	if hash == w.seen {
		return
	}
	w.seen = hash
	c, err := mergeConfigs(w.opts.Config, read)
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	news := Reload{Err: err}
	if err == nil {
		news.Warnings = c.Warnings
		news.Closed = w.replace(c.Static())
	}
	if w.opts.OnReload != nil {
		w.opts.OnReload(news)
	}
}

// replace makes next the catalog and closes what is no longer in it. It is
// published first: who looked a server up before that is caught by the close,
// or by the check before the call is sent; who does so later gets the new one.
func (w *Watched) replace(next *Static) (closed []string) {
	old := w.current.Swap(next)
	for i := range old.enabled {
		e := &old.enabled[i]
		if !uses(next.enabled, &e.Server) {
			w.closer.CloseServer(e.Server)
			closed = append(closed, e.ID)
		}
	}
	return closed
}

// uses reports whether one of the entries has this configuration.
func uses(entries []Entry, s *mcppool.Server) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return !e.Disabled && e.Server.Equal(*s) })
}

// hash stands for the files' contents, which hold secrets, and their errors.
func (w *Watched) hash(files []configFile) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, f := range files {
		writeFrame(&h, string(f.data))
		if f.err != nil {
			writeFrame(&h, f.err.Error())
		}
	}
	return h.Sum64()
}

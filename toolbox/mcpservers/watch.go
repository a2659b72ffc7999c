package mcpservers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// WatchOptions are the settings of [Watch]. Nil means the defaults.
type WatchOptions struct {
	// Options say how the files are read.
	Options *Options
	// Interval is how often the files and what they depend on are looked at;
	// default 2 seconds. A negative one leaves it to [Watcher.Reload].
	Interval time.Duration
	// OnChange is called with what the files say after each change, what
	// [Watch] read first not included. It runs on the goroutine that watches or
	// that calls Reload, and must call neither Close nor Reload.
	OnChange func(*Config)
}

const defaultInterval = 2 * time.Second

// Watcher follows files, the env files that they name and the variables that
// they use. It is made by [Watch] and must be closed. It is safe for concurrent
// use.
type Watcher struct {
	opts  WatchOptions
	paths []string
	stop  context.CancelFunc
	wg    sync.WaitGroup

	current atomic.Pointer[Config]

	reloading chan struct{} // holds one token; who has it may use the fields below
	good      []*File       // what each file said when it could be read last
	uses      []uses        // what each depended on when it was read
}

// Watch reads the files as [Load] does and looks at them again and again. While
// a file can't be read, or has become empty, what it said last counts, and
// [Config.Errs] says why.
//
// It reads the files each time rather than trusting their times, which miss a
// change within the clock's tick; a directory's events would miss files behind
// symbolic links and on network file systems.
func Watch(opts *WatchOptions, paths ...string) *Watcher {
	w := newWatcher(opts, paths)
	w.start()
	return w
}

// newWatcher reads the files; start is to be called next.
func newWatcher(opts *WatchOptions, paths []string) *Watcher {
	w := &Watcher{
		paths: slices.Clone(paths), reloading: make(chan struct{}, 1),
		good: make([]*File, len(paths)), uses: make([]uses, len(paths)),
	}
	if opts != nil {
		w.opts = *opts
	}
	w.read()
	return w
}

// start begins the watching.
func (w *Watcher) start() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.reloading <- struct{}{}
	interval := w.opts.Interval
	if interval == 0 {
		interval = defaultInterval
	}
	if interval > 0 {
		w.wg.Go(func() { w.watch(ctx, interval) })
	}
}

// Close ends the watching. What was read last stays.
func (w *Watcher) Close() error {
	w.stop()
	w.wg.Wait()
	return nil
}

// Config returns what the files say. It must not be changed.
func (w *Watcher) Config() *Config { return w.current.Load() }

// Reload looks at the files and at what they depend on now, and returns what
// they say.
func (w *Watcher) Reload() *Config {
	<-w.reloading
	defer func() { w.reloading <- struct{}{} }()
	if w.changed() {
		w.read()
		if w.opts.OnChange != nil {
			w.opts.OnChange(w.Config())
		}
	}
	return w.Config()
}

func (w *Watcher) watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.Reload()
		}
	}
}

// changed reports whether a file, or what one depends on, isn't as it was read.
func (w *Watcher) changed() bool {
	o := withDefaults(w.opts.Options)
	for i, path := range w.paths {
		if w.uses[i].changed(path, o) {
			return true
		}
	}
	return false
}

// read reads all files. The good ones stay where the new ones are broken, and
// then depend on the broken text only.
func (w *Watcher) read() {
	errs := make([]error, len(w.paths))
	for i, path := range w.paths {
		f, d, err := read(path, withDefaults(w.opts.Options))
		if old := w.good[i]; err == nil && f.blank && old != nil && !old.blank {
			err = &Error{Place: Place{File: path}, Reason: "is empty, as it is while it is written: what it said last counts"}
		}
		errs[i], w.uses[i] = err, uses{text: d}
		if err == nil {
			f.uses.text = d
			w.good[i], w.uses[i] = f, f.uses
		}
	}
	w.current.Store(merge(w.good, errs))
}

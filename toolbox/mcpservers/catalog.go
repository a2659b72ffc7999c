package mcpservers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// Catalog returns what the files say as a catalog that doesn't change. A
// server's ID there is its name; one that has none can't be called and is left
// out. Edit is [CatalogOptions.Edit]; it may be nil.
func (c *Config) Catalog(edit func(*toolbox.Entry)) *toolbox.StaticCatalog {
	entries := make([]toolbox.Entry, 0, len(c.Entries))
	for i := range c.Entries {
		if c.Entries[i].Name != "" {
			entries = append(entries, c.Entries[i].edited(edit))
		}
	}
	catalog, err := toolbox.NewStaticCatalog(entries...)
	if err != nil {
		panic("bug: " + err.Error()) // no two have one name
	}
	return catalog
}

// edited is the entry as catalogs have it.
func (e *Entry) edited(edit func(*toolbox.Entry)) toolbox.Entry {
	entry := toolbox.Entry{
		ID: e.Name, Name: e.Title,
		Disabled: e.Disabled, Err: e.Err,
		Server: e.Server, Tools: e.Tools, Timeout: e.CallTimeout,
	}
	entry.Server.Policy.ConnectTimeout = e.StartTimeout
	if edit != nil && entry.Err == nil {
		edit(&entry)
		entry.ID = e.Name
	}
	return entry
}

// CatalogOptions are the settings of [WatchCatalog]. Nil means the defaults.
type CatalogOptions struct {
	// Options say how the files are read.
	Options *Options
	// Interval is how often the files and what they depend on are looked at;
	// default 2 seconds. A negative one leaves it to [WatchedCatalog.Reload].
	Interval time.Duration
	// Edit may change each entry that has no Err, but not its ID, to say what
	// files have no words for: how sessions are kept, a call's timeout, that the
	// host doesn't want the server (Disabled). It is called each time the files
	// are read, and must do the same each time.
	Edit func(*toolbox.Entry)
	// OnReload is called after each change of the files, and by [WatchCatalog]
	// when there are warnings or broken entries. It runs on the goroutine that
	// watches or that calls Reload, and must call neither Close nor Reload.
	OnReload func(Reload)
}

// Reload is what came of a change of the files.
type Reload struct {
	// Config is what they say now; what is wrong with them is in its Errs, in
	// the Err of its entries and in its Warnings.
	Config *Config
	// Closed are the servers, by ID, that were changed, disabled or removed, and
	// whose sessions were closed.
	Closed []string
}

// Closer closes the sessions of a server, as [mcppool.Pool] does.
type Closer interface {
	CloseServer(mcppool.Server)
}

// WatchedCatalog is a catalog of configuration files that follows their changes,
// as a [Watcher] does. It is made by [WatchCatalog] and must be closed. It is
// safe for concurrent use.
type WatchedCatalog struct {
	closer  Closer
	opts    CatalogOptions
	watcher *Watcher

	current atomic.Pointer[toolbox.StaticCatalog]

	// live are the servers that may have sessions, by ID: those of current, and
	// what broken entries were before they broke. It is used by the watcher's
	// OnChange alone, which never runs twice at once.
	live map[string]mcppool.Server
}

// WatchCatalog reads the files as [Load] does and follows them. When they
// change, the sessions of the servers that were changed, disabled or removed are
// closed, and only those. A file that breaks changes nothing: what it said last
// counts. An entry that breaks serves no calls, and its sessions stay for when it
// is mended. It fails when a file can't be read at the start.
func WatchCatalog(pool Closer, opts *CatalogOptions, paths ...string) (*WatchedCatalog, error) {
	w := &WatchedCatalog{closer: pool}
	if opts != nil {
		w.opts = *opts
	}
	w.watcher = newWatcher(&WatchOptions{Options: w.opts.Options, Interval: w.opts.Interval, OnChange: w.changed}, paths)
	c := w.Config()
	if err := errors.Join(c.Errs...); err != nil {
		return nil, err
	}
	w.replace(c.Catalog(w.opts.Edit))
	broken := func(e Entry) bool { return e.Err != nil }
	if w.opts.OnReload != nil && (len(c.Warnings) > 0 || slices.ContainsFunc(c.Entries, broken)) {
		w.opts.OnReload(Reload{Config: c})
	}
	w.watcher.start()
	return w, nil
}

// Close ends the watching. The catalog stays as it is.
func (w *WatchedCatalog) Close() error { return w.watcher.Close() }

// Config returns what the files say. It must not be changed.
func (w *WatchedCatalog) Config() *Config { return w.watcher.Config() }

// Reload looks at the files and at what they depend on now, and returns what
// they say. The catalog says the same when it returns.
func (w *WatchedCatalog) Reload() *Config { return w.watcher.Reload() }

// Lookup finds one server.
func (w *WatchedCatalog) Lookup(ctx context.Context, id string) (toolbox.Entry, error) {
	return w.current.Load().Lookup(ctx, id)
}

// List returns the enabled servers by ID.
func (w *WatchedCatalog) List(ctx context.Context) ([]toolbox.Entry, error) {
	return w.current.Load().List(ctx)
}

func (w *WatchedCatalog) changed(c *Config) {
	closed := w.replace(c.Catalog(w.opts.Edit))
	if w.opts.OnReload != nil {
		w.opts.OnReload(Reload{Config: c, Closed: closed})
	}
}

// replace makes next the catalog and closes what is no longer in it. It is
// published first: who looked a server up before that is caught by the close,
// or by the check before the call is sent; who does so later gets the new one.
func (w *WatchedCatalog) replace(next *toolbox.StaticCatalog) (closed []string) {
	enabled, err := next.List(context.Background())
	if err != nil {
		panic("bug: " + err.Error()) // it always knows
	}
	before := w.live
	w.live = make(map[string]mcppool.Server, len(enabled))
	for i := range enabled {
		e := &enabled[i]
		if e.Err == nil {
			w.live[e.ID] = e.Server
		} else if s, was := before[e.ID]; was {
			w.live[e.ID] = s
		}
	}
	w.current.Store(next)
	for id, s := range before {
		if !inUse(w.live, s) {
			w.closer.CloseServer(s)
			closed = append(closed, id)
		}
	}
	slices.Sort(closed)
	return closed
}

// inUse reports whether one of the servers has this configuration.
func inUse(servers map[string]mcppool.Server, s mcppool.Server) bool {
	for _, other := range servers {
		if other.Equal(s) {
			return true
		}
	}
	return false
}

package pooldebug

import (
	"crypto/rand"
	_ "embed" // for the page's files
	"encoding/json"
	"hash/maphash"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

//go:embed assets/page.html
var pageHTML string

//go:embed assets/page.css
var pageCSS string

//go:embed assets/page.js
var pageJS string

const (
	// maxViewers bounds the pages that are kept up to date at a time.
	maxViewers = 16
	// writeTimeout is how long a viewer may take for one update.
	writeTimeout = 10 * time.Second
	maxForm      = 4096 // bytes
)

// ServeHTTP answers, at whatever path:
//
//   - GET: the page
//   - GET ?format=json: what it shows, as JSON
//   - GET ?format=events: the same as server-sent events, until the request ends
//   - POST: closes what the form names, with [Options.Actions]: action=session and
//     id, action=server and server, or action=idle
//
// Both formats take q (words to search for), sort (server, scope, state, opened,
// used, calls, inflight or id; a minus before it turns it round), closed=no and
// limit.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !p.hostAllowed(r):
		http.Error(w, "this page isn't served under that host name; see pooldebug.Options.Hosts", http.StatusForbidden)
	case r.Method == http.MethodPost && p.opts.Actions:
		p.act(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows", http.StatusMethodNotAllowed)
	case r.URL.Query().Get("format") == "json":
		p.serveJSON(w, r)
	case r.URL.Query().Get("format") == "events":
		p.serveEvents(w, r)
	default:
		p.servePage(w)
	}
}

// hostAllowed refuses requests to a loopback address by a name that isn't its own.
func (p *Page) hostAllowed(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && ip.IsLoopback() ||
		slices.ContainsFunc(p.opts.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// servePage serves the page, which holds nothing of the pool: its script asks
// for that, and makes text of all of it.
func (p *Page) servePage(w http.ResponseWriter) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+
		"'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "+
		"require-trusted-types-for 'script'; trusted-types 'none'")
	_, _ = strings.NewReplacer("{{nonce}}", nonce, "{{css}}", pageCSS, "{{js}}", pageJS).WriteString(w, pageHTML)
}

func (p *Page) serveJSON(w http.ResponseWriter, r *http.Request) {
	s := p.snapshot(parseQuery(r.URL.Query()), 0)
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(&s)
}

// update is one server-sent event: a snapshot with only those sessions and events
// that the viewer hasn't got.
type update struct {
	snapshot
	Order []string `json:"order"` // the ids of the sessions shown
}

// view is what one viewer has got.
type view struct {
	seq  uint64            // the last event
	rows map[string]uint64 // by session: hash of its JSON
}

var seed = maphash.MakeSeed()

// serveEvents streams updates until the request ends.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	defer p.viewers.Add(-1)
	if p.viewers.Add(1) > maxViewers {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many open pages", http.StatusServiceUnavailable)
		return
	}
	q := parseQuery(r.URL.Query())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	control := http.NewResponseController(w)
	// The server's own timeouts are for requests that end; each write has one of
	// its own. A writer without deadlines does without.
	_ = control.SetReadDeadline(time.Time{})
	ticker := time.NewTicker(p.opts.Interval)
	defer ticker.Stop()
	for v := (view{}); ; {
		data, err := json.Marshal(v.next(p.snapshot(q, v.seq)))
		if err != nil {
			panic("bug: " + err.Error())
		}
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(append(append([]byte("data: "), data...), "\n\n"...)); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// next leaves out of s what the viewer has.
func (v *view) next(s snapshot) update {
	u := update{snapshot: s, Order: make([]string, len(s.Sessions))}
	u.Sessions = []sessionInfo{}
	rows := make(map[string]uint64, len(s.Sessions))
	for i := range s.Sessions {
		row := &s.Sessions[i]
		data, err := json.Marshal(row)
		if err != nil {
			panic("bug: " + err.Error())
		}
		u.Order[i] = row.ID
		rows[row.ID] = maphash.Bytes(seed, data)
		if had, ok := v.rows[row.ID]; !ok || had != rows[row.ID] {
			u.Sessions = append(u.Sessions, *row)
		}
	}
	v.rows = rows
	if n := len(s.Events); n > 0 {
		v.seq = s.Events[n-1].Seq
	}
	return u
}

// act does what a button of the page asks for.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	if err := p.origin.Check(r); err != nil {
		http.Error(w, "only the page itself may ask for this", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "not a form", http.StatusBadRequest)
		return
	}
	pool := p.pool.Load()
	if pool == nil {
		http.Error(w, "no pool is attached", http.StatusConflict)
		return
	}
	closed := 0
	switch r.PostForm.Get("action") {
	case "session":
		if pool.CloseSession(r.PostForm.Get("id")) {
			closed = 1
		}
	case "server":
		closed = closeServer(pool, r.PostForm.Get("server"))
	case "idle":
		closed = pool.Stats().Idle
		pool.CloseIdle(0)
	default:
		http.Error(w, "no such action", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"closed": closed})
}

// closeServer closes the sessions under a label. The page knows no more of a
// server than that, so this isn't [mcppool.Pool.CloseServer].
func closeServer(pool *mcppool.Pool, label string) (closed int) {
	for info := range pool.Sessions() {
		if clean(info.Server) == label && pool.CloseSession(info.ID) {
			closed++
		}
	}
	return closed
}

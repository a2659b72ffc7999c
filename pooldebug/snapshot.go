package pooldebug

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

// The JSON of a page. Times are milliseconds since 1970, durations milliseconds.

// snapshot is what a page shows.
type snapshot struct {
	Now      int64              `json:"now"`
	Window   float64            `json:"window"`
	Covered  float64            `json:"covered"` // the part of the window that the page has been there for
	Title    string             `json:"title"`
	Attached bool               `json:"attached"`
	Actions  bool               `json:"actions"`
	Stats    statsInfo          `json:"stats"`
	Limits   []limitInfo        `json:"limits"`
	Series   seriesInfo         `json:"series"`
	Latency  map[string]latInfo `json:"latency"`
	Bounds   []float64          `json:"bounds"` // upper ends of the buckets; the last has none
	Servers  []serverInfo       `json:"servers"`
	Sessions []sessionInfo      `json:"sessions"`
	Matching int                `json:"matching"` // sessions that the query asks for, shown or not
	Total    int                `json:"total"`
	Events   []eventInfo        `json:"events"`  // the oldest first
	LeftOut  uint64             `json:"leftOut"` // lines of output that are no events, since there were too many
}

type statsInfo struct {
	Open       int               `json:"open"`
	Queued     int               `json:"queued"`
	Connecting int               `json:"connecting"`
	Live       int               `json:"live"`
	Closing    int               `json:"closing"`
	Kept       int               `json:"kept"`
	Idle       int               `json:"idle"`
	Borrowed   int               `json:"borrowed"`
	Spares     int               `json:"spares"`
	Processes  int               `json:"processes"`
	Waiting    int               `json:"waiting"`
	Connects   uint64            `json:"connects"`
	Failures   uint64            `json:"failures"`
	Opened     uint64            `json:"opened"`
	Evicted    uint64            `json:"evicted"`
	Calls      uint64            `json:"calls"`
	Closed     map[string]uint64 `json:"closed"`   // by reason
	Outcomes   map[string]uint64 `json:"outcomes"` // of calls

	BytesSent     int64 `json:"bytesSent"`     // to processes
	BytesReceived int64 `json:"bytesReceived"` // from processes
}

// limitInfo is a limit beside what it bounds. Where it bounds several, such as
// scopes, Used is that of the one that uses most.
type limitInfo struct {
	Name string `json:"name"`
	Used int    `json:"used"`
	Max  int    `json:"max"`
}

// seriesInfo is what happened in each slot of the window, the oldest first.
type seriesInfo struct {
	Slot   float64             `json:"slot"` // how long one is
	Counts map[string][]uint32 `json:"counts"`
}

// latInfo is the histogram of the durations in the window.
type latInfo struct {
	Count   uint64   `json:"count"`
	P50     float64  `json:"p50"`
	P90     float64  `json:"p90"`
	P99     float64  `json:"p99"`
	Max     float64  `json:"max"`
	Buckets []uint32 `json:"buckets"`
}

type serverInfo struct {
	Server   string `json:"server"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Sessions int    `json:"sessions"`
	Busy     int    `json:"busy"`
	Spares   int    `json:"spares"`
	Calls    uint64 `json:"calls"` // of the open sessions
	Backoff  string `json:"backoff,omitempty"`
}

type sessionInfo struct {
	ID        string     `json:"id"`
	Server    string     `json:"server"`
	Scope     string     `json:"scope"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"` // of its end
	OneShot   bool       `json:"oneShot,omitempty"`
	Spare     bool       `json:"spare,omitempty"`
	Kept      bool       `json:"kept"`
	Opened    int64      `json:"opened"`
	Used      int64      `json:"used"`
	Closed    int64      `json:"closed,omitempty"`
	InFlight  int        `json:"inFlight"`
	Calls     uint64     `json:"calls"`
	Tool      string     `json:"tool,omitempty"`
	ToolSince int64      `json:"toolSince,omitempty"`
	Running   int64      `json:"running,omitempty"` // while it connects: since when its process runs
	LastError string     `json:"lastError,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Protocol  string     `json:"protocol,omitempty"`
	Name      string     `json:"name,omitempty"`
	Version   string     `json:"version,omitempty"`
	Stderr    string     `json:"stderr,omitempty"`
	Spans     []spanInfo `json:"spans"`
}

type spanInfo struct {
	Begin int64   `json:"begin"`
	Took  float64 `json:"took"`
	Start float64 `json:"start,omitempty"` // of a connect: until its process ran; the rest is the handshake
	Kind  string  `json:"kind"`
	N     uint32  `json:"n"` // how many lie so near that they are one
}

type eventInfo struct {
	Seq     uint64  `json:"seq"`
	At      int64   `json:"at"`
	Kind    string  `json:"kind"`
	Level   string  `json:"level"`
	Session string  `json:"session,omitempty"`
	Server  string  `json:"server"`
	Tool    string  `json:"tool,omitempty"`
	Text    string  `json:"text,omitempty"`
	Took    float64 `json:"took,omitempty"`
}

// What is shown at most.
const (
	maxServers = 100
	maxShown   = 200 // sessions, unless the request asks for another number
	maxStderr  = 2048
)

// snapshot describes the pool as the query asks for it, with the events after
// since.
func (p *Page) snapshot(q query, since uint64) snapshot {
	now := time.Now()
	s := snapshot{
		Now: now.UnixMilli(), Window: ms(p.opts.Window), Covered: ms(min(p.opts.Window, now.Sub(p.begun))),
		Title: p.opts.Title, Actions: p.opts.Actions,
		Latency: make(map[string]latInfo, latencies), Bounds: make([]float64, buckets),
		Limits: []limitInfo{}, Servers: []serverInfo{}, Sessions: []sessionInfo{},
	}
	for i := range s.Bounds {
		s.Bounds[i] = ms(bound(i))
	}
	var all, found []*candidate
	servers := make(map[string]*serverInfo)
	scopes := make(map[string]int)
	pool := p.pool.Load()
	if pool != nil {
		s.Attached = true
		stats := pool.Stats()
		s.Stats = describeStats(&stats)
		for info := range pool.Sessions() {
			all = append(all, &candidate{SessionInfo: info})
			addToServer(servers, &info)
			if info.Scope != "" && info.State != "queued" {
				scopes[info.Scope]++
			}
		}
		s.Limits = p.limits(&stats, pool.Limits(), most(scopes), mostOf(servers))
	}
	if q.closed {
		all = p.addClosed(all, now)
	}
	s.Total = len(all)
	for _, c := range all {
		if q.matches(c) {
			found = append(found, c)
		}
	}
	s.Matching = len(found)
	q.sort(found)
	for _, c := range found[:min(len(found), q.limit)] {
		s.Sessions = append(s.Sessions, describeSession(c))
	}
	p.addRecorded(&s, servers, since, now)
	return s
}

func describeStats(s *mcppool.Stats) statsInfo {
	out := statsInfo{
		Open: s.Open, Queued: s.Queued, Connecting: s.Connecting, Live: s.Live, Closing: s.Closing, Kept: s.Kept,
		Idle: s.Idle, Borrowed: s.Borrowed, Spares: s.Spares, Processes: s.Processes, Waiting: s.Waiting, Connects: s.Connects,
		Failures: s.Failures, Opened: s.Opened, Evicted: s.Evicted, Calls: s.Calls,
		Closed: make(map[string]uint64), Outcomes: make(map[string]uint64),
		BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
	}
	for why, n := range s.Closed {
		out.Closed[string(why)] = n
	}
	for how, n := range s.Outcomes {
		out.Outcomes[string(how)] = n
	}
	return out
}

func describeSession(i *candidate) sessionInfo {
	s := sessionInfo{
		ID: i.ID, Server: clean(i.Server), Scope: clean(i.Scope), State: i.State, Reason: clean(i.reason), OneShot: i.OneShot,
		Spare: i.Spare, Kept: i.Kept, Opened: unixMS(i.Opened), Used: unixMS(i.LastUsed), Closed: unixMS(i.closed),
		InFlight: i.InFlight, Calls: i.Calls,
		Tool: clean(cut(i.Tool, maxName)), LastError: clean(cut(i.LastError, maxText)), PID: i.PID, Protocol: clean(i.Protocol),
		Stderr: clean(i.Stderr[max(0, len(i.Stderr)-maxStderr):]),
	}
	if i.Tool != "" {
		s.ToolSince = unixMS(i.ToolSince)
	}
	if i.Info != nil {
		s.Name, s.Version = clean(cut(i.Info.Name, maxName)), clean(cut(i.Info.Version, maxName))
	}
	return s
}

// addToServer counts a session in those of its server, of which the first
// maxServers are told of.
func addToServer(servers map[string]*serverInfo, i *mcppool.SessionInfo) {
	s := servers[i.Server]
	if s == nil {
		s = &serverInfo{Server: clean(i.Server)}
		servers[i.Server] = s
	}
	if i.Info != nil && s.Name == "" {
		s.Name, s.Version = clean(cut(i.Info.Name, maxName)), clean(cut(i.Info.Version, maxName))
	}
	s.Sessions++
	s.Calls += i.Calls
	if i.InFlight > 0 {
		s.Busy++
	}
	if i.Spare {
		s.Spares++
	}
}

// limits are those that are set, each beside its use.
func (p *Page) limits(s *mcppool.Stats, l mcppool.Limits, scope, server int) []limitInfo {
	all := []limitInfo{
		{"MaxSessions", s.Kept, p.opts.MaxSessions},
		{"MaxProcesses", s.Processes, l.MaxProcesses},
		{"MaxStarting", s.Connecting, l.MaxStarting},
		{"MaxPerScope", scope, l.MaxPerScope},
		{"MaxPerServer", server, l.MaxPerServer},
		{"MaxWaiting", s.Waiting, l.MaxWaiting},
	}
	return slices.DeleteFunc(all, func(l limitInfo) bool { return l.Max <= 0 })
}

func most(all map[string]int) (n int) {
	for _, m := range all {
		n = max(n, m)
	}
	return n
}

func mostOf(all map[string]*serverInfo) (n int) {
	for _, s := range all {
		n = max(n, s.Sessions)
	}
	return n
}

// addClosed adds the sessions that closed within the window, and those whose
// connect failed. One that the pool told of, too, since it closed meanwhile or is
// about to be forgotten, is shown as the pool told of it.
func (p *Page) addClosed(all []*candidate, now time.Time) []*candidate {
	gone := make(map[string]track)
	p.mu.Lock()
	for _, t := range p.closed {
		if t.ended >= now.Add(-p.opts.Window).UnixNano() {
			gone[t.id] = *t
		}
	}
	p.mu.Unlock()
	for _, c := range all {
		delete(gone, c.ID)
	}
	for _, t := range gone {
		all = append(all, &candidate{closed: time.Unix(0, t.ended), reason: t.reason, SessionInfo: mcppool.SessionInfo{
			ID: t.id, Server: t.server, Scope: t.scope, State: "closed", Spare: t.spare, OneShot: t.reason == string(mcppool.ReasonOneShot),
			Opened: time.Unix(0, t.begun), Calls: t.calls, LastError: t.lastErr,
		}})
	}
	return all
}

// addRecorded adds what the page wrote down itself.
func (p *Page) addRecorded(s *snapshot, servers map[string]*serverInfo, since uint64, now time.Time) {
	var events []event
	spans := make([][]span, len(s.Sessions))
	p.mu.Lock()
	counted, hists := p.series.window(now.UnixNano())
	for i := range s.Sessions {
		row := &s.Sessions[i]
		t := p.tracks[row.ID]
		if row.State == "connecting" {
			row.Running = nsToMS(p.running[row.ID])
		}
		if t == nil {
			continue
		}
		if row.Closed == 0 && t.scope != row.Scope {
			t.scope = row.Scope
		}
		spans[i] = t.spans.appendTo(nil)
	}
	for label, state := range p.backoffs {
		if servers[label] == nil {
			servers[label] = &serverInfo{Server: clean(label)}
		}
		servers[label].Backoff = string(state)
	}
	if since < p.lastSeq {
		events = p.output.lines.appendTo(p.events.appendTo(p.calls.appendTo(nil)))
	}
	s.LeftOut = p.output.leftOut
	p.mu.Unlock()

	from := now.Add(-p.opts.Window).UnixNano()
	for i, all := range spans {
		out := make([]spanInfo, 0, len(all))
		for _, sp := range all {
			if sp.end >= from {
				info := spanInfo{Begin: nsToMS(sp.begin), Took: ms(time.Duration(sp.end - sp.begin)), Kind: spanNames[sp.kind], N: sp.n}
				if sp.ran != 0 {
					info.Start = ms(time.Duration(sp.ran - sp.begin))
				}
				out = append(out, info)
			}
		}
		s.Sessions[i].Spans = out
	}
	s.Series = seriesInfo{Slot: ms(time.Duration(p.series.width)), Counts: make(map[string][]uint32, counts)}
	for k := range counted {
		s.Series.Counts[countNames[k]] = counted[k][:]
	}
	for k := range hists {
		h := &hists[k]
		s.Latency[latencyNames[k]] = latInfo{
			Count: h.count(), P50: ms(h.quantile(.5)), P90: ms(h.quantile(.9)), P99: ms(h.quantile(.99)), Max: ms(h.max),
			Buckets: h.buckets[:],
		}
	}
	for _, srv := range servers {
		s.Servers = append(s.Servers, *srv)
	}
	slices.SortFunc(s.Servers, func(a, b serverInfo) int { return cmp.Compare(a.Server, b.Server) })
	s.Servers = s.Servers[:min(len(s.Servers), maxServers)]
	s.Events = describeEvents(events, since)
}

func describeEvents(all []event, since uint64) []eventInfo {
	slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]eventInfo, 0, len(all))
	for _, e := range all {
		if e.seq > since {
			out = append(out, eventInfo{
				Seq: e.seq, At: nsToMS(e.at), Kind: e.kind, Level: levelNames[e.level], Session: e.session,
				Server: clean(e.server), Tool: clean(e.tool), Text: clean(e.text), Took: ms(e.took),
			})
		}
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func nsToMS(ns int64) int64 { return ns / int64(time.Millisecond) }

func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// clean makes what can't be seen visible: control characters, which terminals
// obey, and those that turn the direction of what comes after them.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return '\u2400' + r
		case r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return '\uFFFD'
		}
		return r
	}, s)
}

package pooldebug

import (
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

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
// maxServers are shown.
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

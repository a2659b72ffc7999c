package mcppool

import (
	"iter"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/label"
	"github.com/mcppool/mcppool/internal/outcome"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// Stats are a pool's numbers at one moment. They add up: every session begun is
// open or closed, so that Connects is Open plus the sum of Closed.
type Stats struct {
	Open       int // sessions that aren't closed: the sum of the next four
	Queued     int // waiting at a limit for their start
	Connecting int
	Live       int // connected
	Closing    int
	Kept       int // sessions that calls can find
	Idle       int // of those, the ones that nobody borrows
	Borrowed   int // live sessions that somebody borrows
	Spares     int // connected sessions in hand
	Processes  int // child processes that were started and haven't ended
	Waiting    int // callers that wait at a limit

	Connects uint64                 // sessions begun
	Failures uint64                 // of them, those that didn't connect
	Opened   uint64                 // of them, those that did
	Closed   map[CloseReason]uint64 // sessions ended, by reason
	Evicted  uint64                 // of them, those that made room: lru and evicted
	Calls    uint64                 // tool calls that have ended: the sum of Outcomes
	Outcomes map[Outcome]uint64     // tool calls that have ended, by how; "lost" are those that weren't repeated

	WaitCount    uint64        // waits that have ended, of callers at a limit or for their turn
	WaitDuration time.Duration // how long they took together

	BytesSent     int64 // to processes, on their stdin
	BytesReceived int64 // from processes, on their stdout
}

// Stats returns the pool's numbers. It takes one lock for a moment, however many
// sessions there are.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.state.Counts()
	s := Stats{
		Open:       c.Open,
		Queued:     c.Queued,
		Connecting: c.Connecting,
		Live:       c.Live,
		Closing:    c.Closing,
		Kept:       c.Kept,
		Idle:       c.Idle,
		Borrowed:   c.Borrowed,
		Spares:     c.Spares,
		Processes:  c.Processes,
		Waiting:    c.Waiting,
		Connects:   c.Connects,
		Failures:   c.Failures,
		Opened:     c.Opened,
		Evicted:    c.Evicted,
		Closed:     make(map[CloseReason]uint64),
		Outcomes:   make(map[Outcome]uint64, len(p.outcomes)),

		WaitCount:    p.waits.Load(),
		WaitDuration: time.Duration(p.waited.Load()),

		BytesSent:     p.traffic.Out.Load(),
		BytesReceived: p.traffic.In.Load(),
	}
	for why, n := range p.state.Closes() {
		s.Closed[CloseReason(why)] = n
	}
	for how, n := range p.outcomes {
		s.Calls += n
		s.Outcomes[Outcome(outcome.Kind(how).String())] = n
	}
	return s
}

// SessionInfo describes a session at one moment. Texts of the server have known
// secrets blanked, but are the server's: whoever shows them has to escape them.
type SessionInfo struct {
	ID      string // never used twice
	Server  string // its label (see [Server.String])
	Scope   string // a keyed digest of the scope, or itself with [Options.ShowScopes]; empty without one
	State   string // "queued", "connecting", "live", "closing"
	Kept    bool   // calls can find it
	OneShot bool
	Spare   bool

	Opened    time.Time
	LastUsed  time.Time // when it was last given back; zero when it never was
	InFlight  int       // borrowers, waiting ones included
	Calls     uint64    // tool calls that have ended
	Tool      string    // the tool that is being called, or empty
	ToolSince time.Time
	LastError string // of a call

	PID      int                 // of its process; 0 when it has none, or it isn't known
	Protocol string              // the revision that is spoken
	Info     *mcp.Implementation // what the server says that it is; nil when it isn't known
	Stderr   string              // the tail of what it wrote there

	PrivateDir string // see [Origin]
}

// infoChunk is how many sessions are described under one hold of the lock.
const infoChunk = 128

// Sessions returns the sessions that are open, in no order. It is a snapshot: the
// loop's body may call the pool. One that closes meanwhile may be left out.
func (p *Pool) Sessions() iter.Seq[SessionInfo] {
	return p.describe(func(add func(*poolstate.Session) bool) { p.state.All(add) })
}

// SessionsOf is [Pool.Sessions] for the sessions of one scope.
func (p *Pool) SessionsOf(scope string) iter.Seq[SessionInfo] {
	return p.describe(func(add func(*poolstate.Session) bool) { p.state.InScope(scope, add) })
}

// describe returns the sessions that collect finds under the lock, which it doesn't
// hold for all of them at once.
func (p *Pool) describe(collect func(add func(*poolstate.Session) bool)) iter.Seq[SessionInfo] {
	return func(yield func(SessionInfo) bool) {
		var all []*conn
		p.mu.Lock()
		collect(func(s *poolstate.Session) bool {
			all = append(all, connOf(s))
			return true
		})
		p.mu.Unlock()
		infos := make([]SessionInfo, 0, min(len(all), infoChunk))
		for chunk := range slices.Chunk(all, infoChunk) {
			infos = infos[:0]
			shown := chunk[:0]
			p.mu.Lock()
			for _, c := range chunk {
				if c.st.Status() != poolstate.Closed {
					infos = append(infos, c.infoLocked())
					shown = append(shown, c)
				}
			}
			p.mu.Unlock()
			for i := range infos {
				shown[i].addDetails(&infos[i])
				if !yield(infos[i]) {
					return
				}
			}
		}
	}
}

// infoLocked describes c. The caller must hold c.pool.mu.
func (c *conn) infoLocked() SessionInfo {
	return SessionInfo{
		ID:       c.id,
		Server:   c.label,
		Scope:    c.st.Key.Scope,
		State:    c.st.Status().String(),
		Kept:     c.st.Linked(),
		OneShot:  c.st.OneShot(),
		Spare:    c.st.Spare(),
		Opened:   c.pool.wall(c.st.Opened),
		LastUsed: c.pool.wall(c.st.LastUsed()),
		InFlight: c.st.InFlight(),
		Calls:    c.st.Calls(),

		PrivateDir: c.dir.Load().Path(),
	}
}

// addDetails adds what isn't protected by the pool's lock.
func (c *conn) addDetails(i *SessionInfo) {
	if i.Scope != "" && !c.pool.opts.ShowScopes {
		i.Scope = "scope-" + label.Hex(keyed.New(nil).Text(i.Scope).Sum())
	}
	tool, since := c.current.Tool()
	i.Tool, i.ToolSince = tool, c.pool.wall(since)
	if err := c.lastErr.Load(); err != nil {
		i.LastError = (*err).Error()
	}
	select {
	case <-c.ready:
	default: // its connect is under way
		if child := c.starting.Load(); child != nil {
			i.PID = child.Pid()
			_, i.Stderr, _ = tailsOf(c.server.redact, child.Death())
		}
		return
	}
	if shown := c.infoToShow(); shown != nil {
		i.Protocol, i.Info = shown.ProtocolVersion, &shown.ServerInfo
	}
	if d, ok := c.client.(*defaultClient); ok {
		i.PID, i.Stderr = d.process()
	}
}

package mcppool

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/keyed"
)

// CloseReason says why a session ended.
type CloseReason string

// The reasons. Exactly one is counted for every session.
const (
	CloseOneShot      CloseReason = "one-shot"      // it was opened for one call
	CloseIdle         CloseReason = "idle"          // unused for IdleTimeout, or CloseIdle
	CloseLRU          CloseReason = "lru"           // least recently used when there were more than MaxSessions
	CloseTimeout      CloseReason = "timeout"       // a call ran past its deadline
	CloseCancelled    CloseReason = "cancelled"     // a call was cancelled
	CloseCrashed      CloseReason = "crashed"       // the connection was lost
	CloseServerClosed CloseReason = "server closed" // CloseServer, CloseCommand, or a Check that said no
	CloseScopeClosed  CloseReason = "scope closed"  // CloseScope
	CloseByID         CloseReason = "closed by id"  // CloseSession
	CloseRetired      CloseReason = "retired"       // RetireServer
	CloseShutdown     CloseReason = "shutdown"      // Shutdown or Close
	CloseEvicted      CloseReason = "evicted"       // another call needed its place at a limit
	CloseRecycled     CloseReason = "recycled"      // too old, too many calls or too much memory
	CloseWedged       CloseReason = "wedged"        // it didn't answer a probe
	CloseDiscarded    CloseReason = "discarded"     // its holder gave it up
	CloseLeaked       CloseReason = "leaked"        // its lease was dropped without a release
	CloseStartFailed  CloseReason = "start failed"  // it never came up
	CloseAbandoned    CloseReason = "abandoned"     // nobody waited for its connect any longer
	ClosePanicked     CloseReason = "panicked"      // the client or the func given to Do panicked
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

	BytesSent     int64 // to processes, on their stdin
	BytesReceived int64 // from processes, on their stdout
}

// Stats gives the pool's numbers. It takes one lock for a moment, however many
// sessions there are.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Open:       p.open,
		Queued:     p.states[stateQueued],
		Connecting: p.states[stateConnecting],
		Live:       p.states[stateLive],
		Closing:    p.states[stateClosing],
		Kept:       p.kept,
		Idle:       p.idle.Len(),
		Borrowed:   p.borrowedLocked(),
		Spares:     p.spares.Len(),
		Processes:  p.tally.processes,
		Waiting:    p.waiting,
		Connects:   p.connects,
		Failures:   p.failures,
		Opened:     p.opened,
		Evicted:    p.evicted,
		Closed:     maps.Clone(p.closes),
		Outcomes:   make(map[Outcome]uint64, len(outcomes)),

		BytesSent:     p.traffic.Out.Load(),
		BytesReceived: p.traffic.In.Load(),
	}
	for how, n := range p.outcomes {
		s.Calls += n
		s.Outcomes[outcomes[how]] = n
	}
	return s
}

// borrowedLocked counts the live sessions that somebody borrows: those that nobody
// does are filed. The caller must hold p.mu.
func (p *Pool) borrowedLocked() int { return p.states[stateLive] - p.idle.Len() - p.spares.Len() }

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
}

// infoChunk is how many sessions are described under one hold of the lock.
const infoChunk = 128

// Sessions gives the sessions that are open, in no order. It is a snapshot: the
// loop's body may call the pool. One that closes meanwhile may be left out.
func (p *Pool) Sessions() iter.Seq[SessionInfo] {
	return p.describe(func(all []*session) []*session {
		all = slices.Grow(all, p.open)
		for _, g := range p.servers {
			for s := range g.members {
				all = append(all, s)
			}
		}
		return all
	})
}

// SessionsOf is [Pool.Sessions] for the sessions of one scope.
func (p *Pool) SessionsOf(scope string) iter.Seq[SessionInfo] {
	return p.describe(func(all []*session) []*session {
		if sc := p.scopes[scope]; sc != nil {
			for s := range sc.members {
				all = append(all, s)
			}
		}
		return all
	})
}

// describe gives the sessions that collect finds under the lock, which it doesn't
// hold for all of them at once.
func (p *Pool) describe(collect func([]*session) []*session) iter.Seq[SessionInfo] {
	return func(yield func(SessionInfo) bool) {
		p.mu.Lock()
		all := collect(nil)
		p.mu.Unlock()
		infos := make([]SessionInfo, 0, min(len(all), infoChunk))
		for chunk := range slices.Chunk(all, infoChunk) {
			infos = infos[:0]
			shown := chunk[:0]
			p.mu.Lock()
			for _, s := range chunk {
				if s.state != stateClosed {
					infos = append(infos, s.infoLocked())
					shown = append(shown, s)
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

// infoLocked describes s. The caller must hold s.pool.mu.
func (s *session) infoLocked() SessionInfo {
	return SessionInfo{
		ID:       s.id,
		Server:   s.label,
		Scope:    s.key.scope,
		State:    s.state.String(),
		Kept:     s.linked,
		OneShot:  s.oneShot,
		Spare:    s.spare,
		Opened:   s.pool.wall(s.opened),
		LastUsed: s.lastUsed(),
		InFlight: s.inFlight,
		Calls:    s.calls,
	}
}

// addDetails adds what isn't protected by the pool's lock.
func (s *session) addDetails(i *SessionInfo) {
	if i.Scope != "" && !s.pool.opts.ShowScopes {
		i.Scope = "scope-" + shortHex(keyed.New(nil).Text(i.Scope).Sum())
	}
	tool, since := s.current.get()
	i.Tool, i.ToolSince = tool, s.pool.wall(since)
	if err := s.lastErr.Load(); err != nil {
		i.LastError = (*err).Error()
	}
	select {
	case <-s.ready:
	default:
		return // its connect is under way
	}
	if shown := s.infoToShow(); shown != nil {
		i.Protocol, i.Info = shown.ProtocolVersion, &shown.ServerInfo
	}
	if c, ok := s.client.(processReporter); ok {
		i.PID, i.Stderr = c.process()
	}
}

// CloseSession closes one session as [Pool.CloseServer] does. It reports whether
// there was one of that id.
func (p *Pool) CloseSession(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.servers {
		for s := range g.members {
			if s.id == id && s.state < stateClosing {
				p.killLocked(s, ErrServerClosed, CloseByID)
				return true
			}
		}
	}
	return false
}

// lastUsed is when s was last given back. The caller must hold s.pool.mu.
func (s *session) lastUsed() time.Time {
	if s.spare {
		return time.Time{}
	}
	return s.pool.wall(s.idle.Used)
}

package mcppool

import (
	"context"
	"time"

	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// Remembered counts what the pool holds of servers, scopes and idle times.
func Remembered(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Remembered()
}

// ReapOldest does what the reaper does when the time of the longest idle
// session is up.
func ReapOldest(p *Pool) {
	p.mu.Lock()
	defer p.unlock()
	p.state.Unlink(p.state.Oldest(), poolstate.Idle, p.now())
}

// SetRSSInterval has memory looked at more often, until undo.
func SetRSSInterval(d time.Duration) (undo func()) {
	old := rssInterval
	rssInterval = d
	return func() { rssInterval = old }
}

// CheckInvariants looks at everything that the pool's lock protects.
func CheckInvariants(p *Pool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Check()
}

// CheckQuiet looks at a pool in which nothing runs: whoever waits at a limit does so
// because it is reached, and no idle session could make room.
func CheckQuiet(p *Pool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.CheckQuiet()
}

// Encoding is the whole text that a server's digest is made of.
func Encoding(s Server) string {
	is := identityOf(&s)
	return string(is.Frames(keyed.New(nil)))
}

// ProbeSession asks whether the server of a borrowed session is alive.
func ProbeSession(ctx context.Context, l *Session) error { return l.c.ask(ctx) }

// RSS is the memory of the process tree of a borrowed session.
func RSS(l *Session) (bytes int64, ok bool) {
	return l.c.client.(interface{ RSS() (int64, bool) }).RSS()
}

// Backoffs counts the failing servers that are remembered.
func Backoffs(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Failing()
}

// NamesKept is how many names of servers the pool remembers.
func NamesKept(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names.Len()
}

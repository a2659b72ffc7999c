package mcppool

import (
	"log/slog"
	"strconv"

	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/label"
	"github.com/mcppool/mcppool/internal/poolstate"
)

// digest stands for a configuration in maps, labels and logs.
type digest = keyed.Digest

// identityOf is what makes s one configuration with others.
func identityOf(s *Server) keyed.Identity {
	return keyed.Identity{
		Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, PrivateDir: string(s.PrivateDir),
		URL: s.URL, Header: s.Header, Protocol: string(s.Protocol),
	}
}

// digestOf is the digest of the whole configuration.
func digestOf(s *Server) digest {
	is := identityOf(s)
	return is.Digest()
}

// sessionID is unique over pools and processes, so that it names a session in a
// log for good.
func sessionID(pool string, n uint64) string { return pool + "-" + strconv.FormatUint(n, 10) }

// Scope names the conversation whose state a session holds, from the ids that a
// chat backend has: no two (project, thread) pairs give the same scope. Without
// a thread it is empty, so that a project's id alone never makes conversations
// share state: a call without scope is a one-shot.
func Scope(project, thread string) string {
	if thread == "" {
		return ""
	}
	return keyed.Scope(project, thread)
}

// ParseScope returns what [Scope] made a scope of.
func ParseScope(scope string) (project, thread string, ok bool) { return keyed.ParseScope(scope) }

// String is a label that is safe for logs: the name, or without one the base name of
// the command or the host of the URL and 12 hex digits that tell configurations
// apart. The digits are keyed with a secret of this process, so they reveal nothing of
// the arguments, environment and headers that went into them, and differ from one
// process to the next.
func (s Server) String() string {
	if s.Name != "" {
		return label.Word(s.Name)
	}
	return label.Numbered(label.Base(s.Command, s.URL), digestOf(&s))
}

// LogValue makes log/slog show [Server.String], rather than the secrets in s.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// labelLocked is what a server of which nothing is open will be called: its name, or
// one with digits while another configuration that is in use has that name. An old
// configuration that is being closed leaves its name to the new one. The caller must
// hold p.mu.
func (p *Pool) labelLocked(srv *Server, d digest) string {
	if srv.Name == "" {
		return srv.String()
	}
	return p.names.Take(label.Word(srv.Name), d, p.inUseLocked)
}

// inUseLocked reports whether a session of a server is open that isn't about to end.
// The caller must hold p.mu.
func (p *Pool) inUseLocked(d digest) bool {
	for s := range p.state.Group(d).Members {
		if s.Status() < poolstate.Closing {
			return true
		}
	}
	return false
}

// Origin says which session something comes from.
type Origin struct {
	SessionID string // see [SessionInfo]
	Server    string // its label (see [Server.String])
	Scope     string
	HTTP      bool // the server is reached at a URL; it has no process of the pool's
	// PrivateDir is the path of the folder that the session has of its own, from right
	// before its process is started until that has ended; empty without
	// [Server.PrivateDir]. Who bounds what it holds looks at it from time to time,
	// and calls [Pool.CloseSession].
	PrivateDir string
}

// ServerName returns what metrics may call the server: Server without the digits that
// tell configurations apart, so that there are few and they last over a restart.
func (o Origin) ServerName() string { return label.Plain(o.Server) }

// origin is where what c does comes from. A spare gets its scope when it
// is handed out.
func (c *conn) origin() Origin {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.originLocked()
}

// borrowedOrigin is origin for those who borrow c, under whom it doesn't change, and for
// AfterConnect, under which it may.
func (c *conn) borrowedOrigin() Origin {
	if !isClosed(c.ready) {
		return c.origin()
	}
	return c.originLocked()
}

// originLocked is origin for who holds c.pool.mu.
func (c *conn) originLocked() Origin {
	return Origin{SessionID: c.id, Server: c.label, Scope: c.st.Key.Scope, HTTP: c.srv.IsHTTP(), PrivateDir: c.dir.Load().Path()}
}

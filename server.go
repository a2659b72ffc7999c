package mcppool

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mcppool/mcppool/internal/cmdline"
	"github.com/mcppool/mcppool/internal/confcheck"
	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/scratch"
)

// Server says what to run or to reach, and how its sessions are kept. Its JSON form
// is that of an entry of an mcpServers configuration file.
//
// Its identity is Command, Args, Env, Dir, PrivateDir, URL, Header and Protocol: two Servers that
// agree in them are one configuration and share sessions. The order of Env and the
// difference between nil and empty don't count, nor do Name and Policy. A Server is
// a value: the pool copies what it keeps, so that a caller may change its own
// afterwards.
type Server struct {
	// Name is what people call the server: the label of logs, errors, metrics,
	// traces and [Info.Server], the same after a restart. Where two configurations
	// with one name are open in a pool, the later one's label has digits besides.
	// Empty is a label made of the command; see [Server.String].
	Name string `json:"name,omitempty"`

	// Command is the program to run, looked up on the PATH that the child will
	// have. Exactly one of Command and URL is set.
	Command string `json:"command,omitempty"`
	// Args are its arguments, without the program's own name.
	Args []string `json:"args,omitempty"`
	// Env is added to the small safe environment that every child gets (see
	// [Options.InheritEnv]); its values win.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the child's working directory; empty means the host's.
	Dir string `json:"cwd,omitempty"`
	// PrivateDir gives the server's sessions folders of their own. The text
	// ${mcppool.dir} in Args, Env and Dir stands for the folder's path; TMPDIR (on
	// Windows TMP and TEMP) is the folder, unless Env has it. Default: none.
	PrivateDir PrivateDir `json:"privateDir,omitempty"`

	// URL is the endpoint of a server that is reached over HTTP. It is spoken
	// to over streamable HTTP, or over SSE where the path ends in "/sse". Such
	// a server keeps its own sessions, so the pool never keeps one: each call
	// connects, calls and closes.
	URL string `json:"url,omitempty"`
	// Header is sent with every request to URL.
	Header map[string]string `json:"headers,omitempty"`

	// Protocol pins the era of the protocol; empty asks the server.
	Protocol Protocol `json:"protocol,omitempty"`

	// Policy says how the server's sessions are kept.
	Policy Policy `json:"-"`
}

// Policy says how the sessions of a server are kept. The zero Policy keeps one for
// each scope. Of calls with different policies for one configuration, the one that
// opened a session counts for that session.
type Policy struct {
	// Mode says which calls share a session; default PerScope.
	Mode Mode
	// Concurrent lets the calls of a shared session overlap.
	Concurrent bool
	// Processes is how many sessions serve a shared server at most; default 1.
	// Another is opened when all are busy, and the least busy one is chosen. Those
	// count that were replaced and still serve calls.
	Processes int
	// Spares is how many connected sessions are kept in hand for calls that would
	// have to start one; default none. They are refilled in the background, don't
	// count in MaxSessions, and are given up first at a limit and after IdleTimeout.
	// A call takes over one that is still connecting.
	Spares int
	// IdleTimeout is how long a session is kept after its last call; zero means
	// [Options.IdleTimeout], negative for ever.
	IdleTimeout time.Duration
	// ConnectTimeout bounds the start of the server; zero means
	// [Options.ConnectTimeout], negative no limit.
	ConnectTimeout time.Duration
	// AfterAbandon is what a call that was given up does to its session; zero
	// means [Options.AfterAbandon].
	AfterAbandon AbandonPolicy
	// BeforeClose is called with each session before it is closed, for a server
	// that loses what it wasn't told to save. Its ctx ends with the grace (see
	// [Options.CloseGrace]); its error is in [SessionClosedInfo], and the close goes
	// on. The Session is its own until it returns. It isn't called when the connection
	// is lost, when the server doesn't answer, or when calls are under way that
	// the close interrupts. Default: none.
	BeforeClose func(context.Context, *Session) error
	// TermFirst has a child get SIGTERM (Windows: CTRL_BREAK) first when it is
	// closed, and the end of its input after the grace: some save what they hold on
	// the one, and not on the other. It has no effect on a server at a URL.
	TermFirst bool
}

// Mode says which calls share a session.
type Mode string

const (
	// PerScope keeps a session for each scope, and opens one for each call that
	// has none.
	PerScope Mode = ""
	// Exclusive is PerScope with one session at a time over all scopes, as a
	// browser profile or a serial port needs it. A call of another scope waits
	// until the session is idle and its process has ended.
	Exclusive Mode = "exclusive"
	// Shared makes one session serve all scopes, calls without one included: an
	// explicit choice, since whatever state it holds is everybody's.
	Shared Mode = "shared"
)

// PrivateDir says whose a folder of a server is. It is a new one, which nobody but this
// user may enter, below [Options.ScratchDir]; its name tells nothing. It goes with all
// it holds, and what is mounted within is a [*LeftError]; what a host leaves that is
// killed, the next pool removes. How full it gets is for the caller to bound; see
// [Origin.PrivateDir].
type PrivateDir string

const (
	// NoPrivateDir is none.
	NoPrivateDir PrivateDir = ""
	// DirPerSession is a folder for each session, which is removed when that has ended.
	DirPerSession PrivateDir = scratch.PerSession
	// DirPerScope is a folder for each scope, for what is to outlive the death of its
	// server's process. It is removed by [Pool.CloseScope] or with the pool. Sessions
	// without a scope have one each, as with DirPerSession. Shared servers and spares
	// can't have it, as they are no scope's.
	DirPerScope PrivateDir = scratch.PerScope
)

// place makes the folder that a session has of its own, and returns what is to be
// started in it, which is the caller's.
func (p *Pool) place(c *conn) (Server, error) {
	srv := c.srv.clone()
	start := scratch.Start{Args: srv.Args, Env: srv.Env, Dir: srv.Dir}
	dir, err := p.dirs.Place(string(srv.PrivateDir), scratch.Owner{Server: c.st.Group.Digest, Scope: c.origin().Scope}, &start)
	if errors.Is(err, scratch.ErrNone) {
		err = &ConfigError{Field: "Server.PrivateDir", Reason: err.Error()}
	}
	c.dir.Store(dir)
	srv.Args, srv.Env, srv.Dir = start.Args, start.Env, start.Dir
	return srv, err
}

// left removes what a session has besides its processes, whose close ended with err, and
// reports whether anything of it is left, which the error then says.
func (c *conn) left(err error) (error, bool) {
	var processes *proc.LeftError
	if errors.As(err, &processes) {
		return &LeftError{Server: c.label, PIDs: processes.Pids, Err: processes.Err}, true // its folder goes with the pool
	}
	dir := c.dir.Load()
	if left := c.pool.dirs.Leave(dir); left != nil {
		return errors.Join(err, &LeftError{Server: c.label, Dir: dir.Path(), Err: left}), true
	}
	return err, false
}

// canSpare reports why a server has no spares.
func (s *Server) canSpare() error {
	switch {
	case s.IsHTTP():
		return &ConfigError{Field: "Server.URL", Reason: "is set: a server that is reached over HTTP has no spares"}
	case s.PrivateDir == DirPerScope:
		return &ConfigError{Field: "Server.PrivateDir", Reason: `is "scope": a spare has no scope, and so no folder`}
	}
	return nil
}

// IsHTTP reports whether s is reached over HTTP rather than run as a child.
func (s Server) IsHTTP() bool { return s.URL != "" }

// Equal reports whether s and o are the same configuration, so that they share
// sessions. How sessions are kept is no part of it.
func (s Server) Equal(o Server) bool {
	is, other := identityOf(&s), identityOf(&o)
	return is.Equal(&other)
}

func (s *Server) clone() Server {
	c := *s
	c.Args = slices.Clone(s.Args)
	c.Env = maps.Clone(s.Env)
	c.Header = maps.Clone(s.Header)
	return c
}

// validate reports what no start could mend. It does no I/O; that Dir exists
// and that the command is found is for the start to say.
func (s *Server) validate() error {
	invalid := func(field, reason string) error { return &ConfigError{Field: "Server." + field, Reason: reason} }
	switch {
	case s.Command == "" && s.URL == "":
		return invalid("Command", "is empty, and so is Server.URL: one of them says what to run or reach")
	case s.Command != "" && s.URL != "":
		return invalid("Command", "is set, and so is Server.URL: a server is run or reached, not both")
	case s.PrivateDir != NoPrivateDir && s.PrivateDir != DirPerSession && s.PrivateDir != DirPerScope:
		return invalid("PrivateDir", `is neither empty nor "session" nor "scope"`)
	case s.PrivateDir == DirPerScope && (s.Policy.Mode == Shared || s.Policy.Spares > 0):
		return invalid("PrivateDir", `is "scope", which neither a shared server nor a spare has; "session" works with both`)
	case s.URL != "" && s.PrivateDir != NoPrivateDir:
		return invalid("PrivateDir", "is set, but a server at a URL has no process of the pool's")
	case s.Protocol != ProtocolAuto && s.Protocol != ProtocolLegacy && s.Protocol != ProtocolModern:
		return invalid("Protocol", `is neither empty nor "legacy" nor "modern"`)
	case s.URL != "" && len(s.Args) > 0:
		return invalid("Args", "is set, but a server at a URL takes none")
	case s.URL != "" && len(s.Env) > 0:
		return invalid("Env", "is set, but a server at a URL has none")
	case s.URL != "" && s.Dir != "":
		return invalid("Dir", "is set, but a server at a URL has none")
	case s.URL == "" && len(s.Header) > 0:
		return invalid("Header", "is set, but a child process takes no headers")
	}
	if err := s.Policy.validate(invalid); err != nil {
		return err
	}
	field, reason := confcheck.Child(s.Command, s.Dir, s.Args, s.Env)
	if s.URL != "" {
		field, reason = confcheck.Remote(s.URL, s.Header)
	}
	if field != "" {
		return invalid(field, reason)
	}
	return nil
}

func (p *Policy) validate(invalid func(field, reason string) error) error {
	switch {
	case p.Mode != PerScope && p.Mode != Exclusive && p.Mode != Shared:
		return invalid("Policy.Mode", `is neither empty nor "exclusive" nor "shared"`)
	case p.Concurrent && p.Mode != Shared:
		return invalid("Policy.Concurrent", "is set without the mode Shared: the calls of one scope don't overlap")
	case p.Processes != 0 && p.Mode != Shared:
		return invalid("Policy.Processes", "is set without the mode Shared: a scope has one session")
	case p.Processes < 0:
		return invalid("Policy.Processes", "is negative")
	case p.Spares < 0:
		return invalid("Policy.Spares", "is negative")
	case p.AfterAbandon > AbandonProbe:
		return invalid("Policy.AfterAbandon", "is not a policy")
	}
	return nil
}

// Protocol is an era of the protocol: how a connection begins.
type Protocol string

const (
	// ProtocolAuto asks the server which it speaks, and remembers.
	ProtocolAuto Protocol = ""
	// ProtocolLegacy begins with initialize: revisions up to 2025-11-25.
	ProtocolLegacy Protocol = "legacy"
	// ProtocolModern has no handshake; every request carries the version:
	// revision 2026-07-28 and later.
	ProtocolModern Protocol = "modern"
)

// ParseCommand makes a [Server] of a command line, such as
// "npx -y @playwright/mcp --user-agent 'a b'". Words are split and quoted as
// POSIX shells do: blanks separate, single quotes keep everything, double
// quotes keep all but a backslash before one of $ ` " \ and a line break, and a
// backslash outside quotes keeps the next character. There is no shell behind
// it: nothing is expanded, and | & ; < > $ * # stand for themselves.
//
// It fails with a [*ConfigError] when the line has no word, a quote that isn't
// closed, or a backslash at its end.
func ParseCommand(line string) (Server, error) {
	words, err := cmdline.Split(line)
	if err != nil {
		return Server{}, &ConfigError{Field: "command line", Reason: err.Error()}
	}
	if len(words) == 0 || words[0] == "" {
		return Server{}, &ConfigError{Field: "command line", Reason: "names no command"}
	}
	s := Server{Command: words[0]}
	if len(words) > 1 {
		s.Args = words[1:]
	}
	return s, nil
}

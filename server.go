package mcppool

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcppool/mcppool/internal/cmdline"
)

// Server says what to run, or what to reach. Its JSON form is that of an entry
// of an mcpServers configuration file.
//
// Two Servers are the same configuration when Command, Args, Env, Dir, URL,
// Header and Protocol are equal; the order of Env and the difference between nil
// and empty don't count. A Server is a value: the pool copies what it keeps, so
// that a caller may change its own afterwards.
type Server struct {
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

	// URL is the endpoint of a server that is reached over HTTP. It is spoken
	// to over streamable HTTP, or over SSE where the path ends in "/sse". Such
	// a server keeps its own sessions, so the pool never keeps one: each call
	// connects, calls and closes.
	URL string `json:"url,omitempty"`
	// Header is sent with every request to URL.
	Header map[string]string `json:"headers,omitempty"`

	// Protocol pins the era of the protocol; empty asks the server.
	Protocol Protocol `json:"protocol,omitempty"`

	// The fields below say how the sessions of the server are kept. They are no
	// part of its identity: Servers that differ only in them are the same
	// configuration, and what the call said that opened a session counts for it.

	// IdleTimeout is how long a session is kept after its last call; zero means
	// [Options.IdleTimeout], negative for ever.
	IdleTimeout time.Duration `json:"-"`
	// AfterAbandon is what a call that was given up does to its session; zero
	// means [Options.AfterAbandon].
	AfterAbandon AbandonPolicy `json:"-"`
	// Exclusive allows one session at a time over all scopes, as a browser
	// profile or a serial port does. A call of another scope waits until the
	// session is idle and its process has ended.
	Exclusive bool `json:"-"`
	// Shared makes one session serve all scopes, calls without one included:
	// an explicit choice, since whatever state it holds is everybody's.
	Shared bool `json:"-"`
	// Concurrent lets the calls of a shared session overlap.
	Concurrent bool `json:"-"`
	// Processes is how many sessions serve a shared server at most; another is
	// opened when all are busy, and the least busy one is chosen. Default 1.
	Processes int `json:"-"`
	// Spares is how many connected sessions are kept in hand for calls that would
	// have to start one. They are refilled in the background, don't count in
	// MaxSessions, and are given up first at a limit and after the idle time.
	Spares int `json:"-"`
}

// IsHTTP reports whether s is reached over HTTP rather than run as a child.
func (s Server) IsHTTP() bool { return s.URL != "" }

// String is a label that is safe for logs: the base name of the command or the
// host of the URL, and 12 hex digits that tell configurations apart. The digits
// are keyed with a secret of this process, so they give nothing away about the
// arguments, environment and headers that went into them, and differ from one
// process to the next.
func (s Server) String() string {
	d := digestOf(&s)
	return s.base() + "-" + hex.EncodeToString(d[:6])
}

// LogValue makes log/slog show [Server.String], rather than the secrets in s.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Equal reports whether s and o are the same configuration, so that they share
// sessions. How sessions are kept is no part of it.
func (s Server) Equal(o Server) bool {
	return s.Command == o.Command && slices.Equal(s.Args, o.Args) && maps.Equal(s.Env, o.Env) && s.Dir == o.Dir &&
		s.URL == o.URL && maps.Equal(s.Header, o.Header) && s.Protocol == o.Protocol
}

func (s *Server) base() string {
	name := "invalid"
	switch {
	case s.IsHTTP():
		if u, err := url.Parse(s.URL); err == nil && u.Hostname() != "" {
			name = u.Hostname()
		} else {
			name = "http"
		}
	case s.Command != "":
		// Both separators, whatever the host: a label is read elsewhere too.
		name = s.Command[strings.LastIndexAny(s.Command, `/\`)+1:]
	}
	// A name is a word of a log line; what could break one is left out.
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '"' || r == '=' {
			return '_'
		}
		return r
	}, name)
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
	const nul = "\x00"
	switch {
	case s.Command == "" && s.URL == "":
		return invalid("Command", "is empty, and so is Server.URL: one of them says what to run or reach")
	case s.Command != "" && s.URL != "":
		return invalid("Command", "is set, and so is Server.URL: a server is run or reached, not both")
	case strings.Contains(s.Command, nul):
		return invalid("Command", "contains a NUL byte")
	case strings.Contains(s.Dir, nul):
		return invalid("Dir", "contains a NUL byte")
	case s.Concurrent && !s.Shared:
		return invalid("Concurrent", "is set without Server.Shared: the calls of one scope don't overlap")
	case s.Processes != 0 && !s.Shared:
		return invalid("Processes", "is set without Server.Shared: a scope has one session")
	case s.Processes < 0:
		return invalid("Processes", "is negative")
	case s.Spares < 0:
		return invalid("Spares", "is negative")
	case s.Exclusive && s.Shared:
		return invalid("Exclusive", "is set, and so is Server.Shared")
	case s.AfterAbandon > AbandonProbe:
		return invalid("AfterAbandon", "is not a policy")
	case s.Protocol != ProtocolAuto && s.Protocol != ProtocolLegacy && s.Protocol != ProtocolModern:
		return invalid("Protocol", `is neither empty nor "legacy" nor "modern"`)
	}
	if s.URL != "" {
		return s.validateHTTP(invalid)
	}
	if len(s.Header) > 0 {
		return invalid("Header", "is set, but a child process takes no headers")
	}
	for i, a := range s.Args {
		if strings.Contains(a, nul) {
			return invalid(fmt.Sprintf("Args[%d]", i), "contains a NUL byte")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		field := fmt.Sprintf("Env[%q]", name)
		switch {
		case name == "":
			return invalid(field, "has an empty name")
		case strings.ContainsAny(name, "=\x00"):
			return invalid(field, `has "=" or a NUL byte in its name`)
		case strings.Contains(s.Env[name], nul):
			return invalid(field, "has a NUL byte in its value")
		}
	}
	return nil
}

func (s *Server) validateHTTP(invalid func(field, reason string) error) error {
	// The parser's own error quotes the URL, which may hold a password.
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return invalid("URL", "can't be parsed")
	case u.Scheme != "http" && u.Scheme != "https": // it isn't told, since it may be the name of a user
		return invalid("URL", "doesn't begin with http:// or https://")
	case u.Host == "":
		return invalid("URL", "has no host")
	case len(s.Args) > 0:
		return invalid("Args", "is set, but a server at a URL takes none")
	case len(s.Env) > 0:
		return invalid("Env", "is set, but a server at a URL has none")
	case s.Dir != "":
		return invalid("Dir", "is set, but a server at a URL has none")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		if name == "" || strings.ContainsAny(name, " \r\n\x00:") {
			return invalid(fmt.Sprintf("Header[%q]", name), "isn't a header's name")
		}
		if strings.ContainsAny(s.Header[name], "\r\n\x00") {
			return invalid(fmt.Sprintf("Header[%q]", name), "has a line break or a NUL byte in its value")
		}
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

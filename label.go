package mcppool

import (
	"cmp"
	"encoding/hex"
	"log/slog"
	"maps"
	"net/url"
	"strings"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// String is a label that is safe for logs: the name, or without one the base name of
// the command or the host of the URL and 12 hex digits that tell configurations
// apart. The digits are keyed with a secret of this process, so they reveal nothing of
// the arguments, environment and headers that went into them, and differ from one
// process to the next.
func (s Server) String() string {
	if s.Name != "" {
		return word(s.Name)
	}
	return s.numbered(digestOf(&s))
}

// numbered is the label that no other configuration has; d is the digest of s.
func (s *Server) numbered(d digest) string {
	return cmp.Or(word(s.Name), s.base()) + "-" + shortHex(d)
}

// LogValue makes log/slog show [Server.String], rather than the secrets in s.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

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
	return word(name)
}

// word makes a name a word of a log line, without what could break one.
func word(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '"' || r == '=' {
			return '_'
		}
		return r
	}, name)
}

// labelDigits is how many of a digest's digits are shown.
const labelDigits = 12

func shortHex(d digest) string { return hex.EncodeToString(d[:labelDigits/2]) }

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

// labelLocked is what a server of which nothing is open will be called: its name, or
// one with digits while another configuration that is in use has that name. An old
// configuration that is being closed leaves its name to the new one. The caller must
// hold p.mu.
func (p *Pool) labelLocked(srv *Server, d digest) string {
	if srv.Name == "" {
		return srv.String()
	}
	name := word(srv.Name)
	if holder, ok := p.names[name]; ok && holder != d && p.inUseLocked(holder) {
		return srv.numbered(d)
	}
	if len(p.names) >= 2*p.state.Open()+minNames {
		maps.DeleteFunc(p.names, func(_ string, holder digest) bool { return p.state.Group(holder) == nil })
	}
	p.names[name] = d
	return name
}

// minNames is how many names of servers are remembered although nothing of them may be
// open.
const minNames = 64

// inUseLocked reports whether a session of a server is open that isn't about to end.
// The caller must hold p.mu.
func (p *Pool) inUseLocked(d digest) bool {
	g := p.state.Group(d)
	if g == nil {
		return false
	}
	for s := range g.Members {
		if s.Status() < poolstate.Closing {
			return true
		}
	}
	return false
}

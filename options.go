package mcppool

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/childenv"
)

// Version is the version of this module.
const Version = "0.1.0"

// Options are the settings of a pool. In every number and duration zero means
// the default given with it, and a negative value means off or no limit where
// that makes sense; [New] refuses it elsewhere. [New] copies them.
type Options struct {
	// MaxSessions is how many sessions the pool keeps; default 32, negative no
	// limit. Idle ones beyond it are closed, the least recently used first. A
	// busy one is never closed for it, so that more may be open at a time.
	MaxSessions int
	// IdleTimeout is how long a session is kept after its last call; default 5
	// minutes, negative for ever.
	IdleTimeout time.Duration
	// ConnectTimeout bounds starting a server and its handshake, whoever waits
	// for it; default 60 seconds, negative no limit. A caller's context bounds
	// only its own wait.
	ConnectTimeout time.Duration
	// CloseTimeout bounds the end of a session: end of input, a while, SIGTERM,
	// a while, and SIGKILL to the whole process tree; default 10 seconds.
	CloseTimeout time.Duration
	// MaxMessageSize bounds one message of a server, in bytes; default 64 MiB,
	// negative no limit. A longer one costs the session, not the host's memory.
	MaxMessageSize int

	// AfterAbandon is what a call that was given up does to its session; default:
	// Discard.
	AfterAbandon AbandonPolicy
	// ProbeTimeout bounds how long a session may be silent when it is looked
	// whether it answers; default 5 seconds.
	ProbeTimeout time.Duration
	// HealthInterval makes the pool look at idle sessions this often whether they
	// answer, and close those that don't; default: never.
	HealthInterval time.Duration

	// Limits bound what runs and what waits; default: none.
	Limits Limits
	// Backoff holds off servers that keep failing; default: off.
	Backoff Backoff
	// Recycle replaces old sessions; default: never.
	Recycle Recycle

	// Dial connects to a server; the default runs Command as a child process or
	// speaks HTTP to URL. Its ctx ends with the connect, and never bounds the
	// life of the client: ended before Dial returns, it means that nobody waits
	// any longer. Dial may be called for many servers at once.
	Dial func(ctx context.Context, srv Server) (Client, error)

	// InheritEnv names the variables of the host's environment that children
	// get besides the safe ones: HOME, LANG, LC_*, LOGNAME, PATH, SHELL, TERM,
	// TMPDIR and USER (on Windows: APPDATA, HOMEDRIVE, HOMEPATH, LOCALAPPDATA,
	// PATH, PATHEXT, PROCESSOR_ARCHITECTURE, SYSTEMDRIVE, SYSTEMROOT, TEMP, TMP,
	// USERNAME, USERPROFILE). "*" is all of it.
	InheritEnv []string

	// Handlers answer what servers ask of their client.
	Handlers Handlers
	// ClientInfo is how the pool introduces itself to servers; default:
	// "mcppool" and the version of this module.
	ClientInfo mcp.Implementation

	// Logger gets a line for each event of a session's life; default: none.
	// Nothing is logged per call above slog.LevelDebug, and never a secret.
	Logger *slog.Logger
	// ShowScopes lets [Pool.Sessions] show scopes as they are, rather than a digest.
	ShowScopes bool
	// Trace is told what the pool does; default: nobody.
	Trace *Trace
}

const (
	defaultMaxSessions    = 32
	defaultIdleTimeout    = 5 * time.Minute
	defaultConnectTimeout = 60 * time.Second
	defaultCloseTimeout   = 10 * time.Second
	defaultMaxMessageSize = 64 << 20
	defaultProbeTimeout   = 5 * time.Second
)

func (o *Options) maxSessions() int           { return orDefault(o.MaxSessions, defaultMaxSessions) }
func (o *Options) idleTimeout() time.Duration { return orDefault(o.IdleTimeout, defaultIdleTimeout) }
func (o *Options) connectTimeout() time.Duration {
	return orDefault(o.ConnectTimeout, defaultConnectTimeout)
}
func (o *Options) closeTimeout() time.Duration { return orDefault(o.CloseTimeout, defaultCloseTimeout) }

// maxMessageSize is in bytes; no limit is one that leaves room to grow towards it.
func (o *Options) maxMessageSize() int {
	if o.MaxMessageSize < 0 {
		return math.MaxInt / 2
	}
	return orDefault(o.MaxMessageSize, defaultMaxMessageSize)
}

func (o *Options) probeTimeout() time.Duration { return orDefault(o.ProbeTimeout, defaultProbeTimeout) }

// idleTimeoutOf is the idle timeout of a server's sessions.
func (o *Options) idleTimeoutOf(srv *Server) time.Duration {
	return orDefault(srv.IdleTimeout, o.idleTimeout())
}

func (o *Options) clientInfo() mcp.Implementation {
	if o.ClientInfo.Name != "" {
		return o.ClientInfo
	}
	return mcp.Implementation{Name: "mcppool", Version: Version}
}

// orDefault resolves the zero value. A negative result means off.
func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func (o *Options) clone() Options {
	if o == nil {
		return Options{}
	}
	c := *o
	c.InheritEnv = slices.Clone(o.InheritEnv)
	return c
}

func (o *Options) validate() error {
	if o.CloseTimeout < 0 {
		return &ConfigError{Field: "Options.CloseTimeout", Reason: "is negative: a close must end"}
	}
	for _, f := range [...]struct {
		name  string
		value time.Duration
	}{
		{"ProbeTimeout", o.ProbeTimeout},
		{"HealthInterval", o.HealthInterval},
		{"Backoff.After", time.Duration(o.Backoff.After)},
		{"Backoff.Initial", o.Backoff.Initial},
		{"Backoff.Max", o.Backoff.Max},
		{"Backoff.MinUptime", o.Backoff.MinUptime},
	} {
		if f.value < 0 {
			return &ConfigError{Field: "Options." + f.name, Reason: "is negative, which means nothing here"}
		}
	}
	for _, name := range o.InheritEnv {
		if !childenv.IsName(name) && name != "*" {
			return &ConfigError{Field: "Options.InheritEnv", Reason: `has an entry that is neither a variable's name nor "*"`}
		}
	}
	return nil
}

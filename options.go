package mcppool

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os/exec"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/backoff"
	"github.com/mcppool/mcppool/internal/childenv"
	"github.com/mcppool/mcppool/internal/poolstate"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/tenure"
)

// Version is the version of this module.
const Version = "0.1.0"

// Options are the settings of a pool. In every number and duration zero means
// the default given with it, and a negative value means off or no limit where
// that makes sense; [New] refuses it elsewhere. [New] copies them.
//
// Their funcs, as those of a [Policy] and of a custom client, may call the pool, but
// must not wait for what waits for them: the end of the pool, and, but for Handlers, a
// session of the same server. One that panics or ends its goroutine has failed.
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
	// CloseTimeout bounds the end of a session: end of input, the grace, SIGTERM,
	// a while, and SIGKILL to the whole process tree; default 10 seconds.
	CloseTimeout time.Duration
	// CloseGrace is how much of CloseTimeout a session gets to end by itself, with
	// [Policy.BeforeClose], before the next step; default half of it.
	CloseGrace time.Duration
	// MaxMessageSize bounds one message of a server, in bytes; default 64 MiB,
	// negative no limit. A longer one costs the session, not the host's memory.
	MaxMessageSize int

	// AfterAbandon is what a call that was given up does to its session; default:
	// AbandonDiscard.
	AfterAbandon AbandonPolicy
	// ProbeTimeout bounds how long a session may be silent when it is asked
	// whether it answers; default 5 seconds.
	ProbeTimeout time.Duration
	// HealthInterval makes the pool look at idle sessions and spares this often
	// whether they answer, and close those that don't; default: never.
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

	// Command is called before each start of a child process, those of spares and
	// one-shots and second starts of one connect included, and may change how it is
	// started: Path, Args (whose first is the program's own name), Env, Dir,
	// ExtraFiles and SysProcAttr of cmd, such as the user, namespaces or a cgroup;
	// nothing else of it counts. What the pool needs is set afterwards and wins: the
	// standard streams, the session (Setsid), on Linux Pdeathsig and PidFD, on Windows
	// the flags that put the child into its job. What it adds to Env is secret, as
	// [Server.Env] is. Its error fails the start. It may be called for many starts at
	// once, and isn't part of a Server's identity. Default: none.
	Command func(from Origin, srv Server, cmd *exec.Cmd) error

	// ContainerCLIs names programs that run containers as docker, podman and nerdctl do,
	// which are known, or that run such a program, as sudo, doas, env and nice do. Of
	// a Server that runs a container with one of them the pool labels the container,
	// and ends it with its session; one that names its container (--name) must be
	// Exclusive, or Shared in one process.
	ContainerCLIs []string
	// ScratchDir is the folder in which pools keep what must outlive a host that is
	// killed, so that the next one finds it; default: mcppool-UID in the folder for
	// temporary files. It is this user's alone, and is made when it is needed. A short
	// path is best: browsers make sockets in their TMPDIR, whose paths may have some 100
	// bytes.
	ScratchDir string

	// AfterConnect is called with each session that has just connected, spares
	// included, before anybody else has it: to log in, or to warm it up. Its ctx is
	// that of the connect, of which it is a part, and which fails with its error.
	// The Session is its own until it returns. Default: none.
	AfterConnect func(context.Context, *Session) error

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

// maxMessage is MaxMessageSize; no limit is one that leaves room to grow towards it.
func (o *Options) maxMessage() int {
	if o.MaxMessageSize < 0 {
		return math.MaxInt / 2
	}
	return o.MaxMessageSize
}

// resolved is a copy of o with every default filled in.
func (o *Options) resolved() Options {
	var r Options
	if o != nil {
		r = *o
	}
	r.InheritEnv = slices.Clone(r.InheritEnv)
	r.ContainerCLIs = slices.Clone(r.ContainerCLIs)
	r.ScratchDir = cmp.Or(r.ScratchDir, tenure.DefaultBase())
	r.MaxSessions = cmp.Or(r.MaxSessions, 32)
	r.IdleTimeout = cmp.Or(r.IdleTimeout, 5*time.Minute)
	r.ConnectTimeout = cmp.Or(r.ConnectTimeout, 60*time.Second)
	r.CloseTimeout = cmp.Or(r.CloseTimeout, 10*time.Second)
	r.CloseGrace = cmp.Or(r.CloseGrace, r.CloseTimeout/2)
	r.MaxMessageSize = cmp.Or(r.MaxMessageSize, 64<<20)
	r.ProbeTimeout = cmp.Or(r.ProbeTimeout, 5*time.Second)
	r.AfterAbandon = cmp.Or(r.AfterAbandon, AbandonDiscard)
	r.Backoff.Initial = cmp.Or(r.Backoff.Initial, 500*time.Millisecond)
	r.Backoff.Max = cmp.Or(r.Backoff.Max, 30*time.Second)
	r.Backoff.MinUptime = cmp.Or(r.Backoff.MinUptime, 10*time.Second)
	if r.ClientInfo.Name == "" {
		r.ClientInfo = mcp.Implementation{Name: "mcppool", Version: Version}
	}
	return r
}

func (o *Options) validate() error {
	if o.CloseTimeout < 0 {
		return &ConfigError{Field: "Options.CloseTimeout", Reason: "is negative: a close must end"}
	}
	if o.CloseGrace < 0 || o.CloseGrace > o.CloseTimeout {
		return &ConfigError{Field: "Options.CloseGrace", Reason: "is negative, or longer than Options.CloseTimeout, of which it is a part"}
	}
	for _, f := range [...]struct {
		name  string
		value time.Duration
	}{
		{"ProbeTimeout", o.ProbeTimeout},
		{"HealthInterval", o.HealthInterval},
		{"Backoff.Failures", time.Duration(o.Backoff.Failures)},
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

// Handlers answer what servers ask of their client. Servers of the modern era ask
// by the result of a call, which then goes on with the answers, as the protocol has
// it; the others ask by requests of their own. A nil one isn't offered to
// servers, and one that asks all the same gets a JSON-RPC error at once. They
// run on goroutines of the connection, may block and may call the pool, though
// not with the scope and server that asks, whose call may be waiting for the
// answer. One that panics answers with an error.
type Handlers struct {
	// Sampling answers sampling/createMessage: the server wants a model's answer.
	Sampling func(ctx context.Context, from Origin, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error)
	// Elicitation answers elicitation/create: the server wants to ask the user.
	Elicitation func(ctx context.Context, from Origin, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	// Roots answers roots/list: the server wants to know its working folders. One
	// that asks while its session is a spare, which has no scope, is told that they
	// have changed once the spare is handed to a scope, and asks again.
	Roots func(ctx context.Context, from Origin) ([]mcp.Root, error)
	// Notification gets all notifications but progress, one at a time and in
	// order for each session: log messages, changes of lists, updates.
	Notification func(from Origin, n mcp.JSONRPCNotification)
}

// handlersOf are the handlers for one session.
func (p *Pool) handlersOf(of *conn) (c rpc.Handlers) {
	h := &p.opts.Handlers
	if h.Sampling != nil {
		c.Sampling = func(ctx context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			if own := of.handlers.Load(); own != nil && own.Sampling != nil {
				return own.Sampling(ctx, of.origin(), req)
			}
			return h.Sampling(ctx, of.origin(), req)
		}
	}
	if h.Elicitation != nil {
		c.Elicitation = func(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			if own := of.handlers.Load(); own != nil && own.Elicitation != nil {
				return own.Elicitation(ctx, of.origin(), req)
			}
			return h.Elicitation(ctx, of.origin(), req)
		}
	}
	if h.Roots != nil {
		c.Roots = func(ctx context.Context) ([]mcp.Root, error) {
			p.mu.Lock()
			from := of.originLocked()
			of.nobodysRoots.Store(from.Scope == "") // under the lock, under which it becomes somebody's
			p.mu.Unlock()
			return h.Roots(ctx, from)
		}
	}
	if h.Notification != nil {
		c.Notification = func(n mcp.JSONRPCNotification) { h.Notification(of.origin(), n) }
	}
	return c
}

// Limits bound what runs and what waits. Zero or negative is no limit. Where a
// limit is reached, callers wait under their ctx, in order of arrival within a
// scope and in turns between scopes. They can be changed with [Pool.SetLimits].
//
// Idle sessions whose place another call needs are closed for it, the least
// recently used first: any for MaxProcesses, those of the scope for MaxPerScope,
// those of the server for MaxPerServer. Spares go before them.
type Limits struct {
	// MaxProcesses bounds the child processes (not counting those that they
	// start themselves): connected, starting, one-shot and ending ones together.
	MaxProcesses int
	// MaxStarting bounds the connects under way at a time, those that nobody waits
	// for any longer included until they have stopped. One that has taken five
	// seconds doesn't count any more, so that it holds up nobody else's.
	MaxStarting int
	// MaxPerScope bounds the processes of one scope, on all servers. One-shot
	// calls have none.
	MaxPerScope int
	// MaxPerServer bounds the processes of one server, over all scopes.
	MaxPerServer int
	// MaxWaiting bounds the callers that wait at a limit; more are refused with
	// a [*BusyError].
	MaxWaiting int
	// MaxWait is how long a caller waits at a limit before it is refused with a
	// [*BusyError].
	MaxWait time.Duration
}

// Backoff holds off a server that keeps failing to start, or dies soon after,
// whichever scope asks for it. Failed tools, timeouts and cancellations never
// count. While it lasts, calls that would have to start the server fail at once
// with a [*StartError] that says why and until when; then one attempt is made at
// a time, until one comes up. A server is trusted again, and its failures are
// forgotten, when a session has lived for MinUptime.
type Backoff struct {
	// Failures is how many failures in a row are let through; zero means that
	// nothing is ever held off.
	Failures int
	// Initial is the first pause, and doubles with each failure; default 500 ms.
	// Up to a quarter of a pause is taken off it at random.
	Initial time.Duration
	// Max bounds the pause; default 30 s.
	Max time.Duration
	// MinUptime is how long a session must live for its start to count as a
	// success; default 10 s.
	MinUptime time.Duration
}

// maxBackoffs bounds the memory of failing servers; beyond it one is forgotten.
const maxBackoffs = 1024

func (b *Backoff) config() backoff.Config {
	return backoff.Config{Failures: b.Failures, Initial: b.Initial, Max: b.Max, MinUptime: b.MinUptime, Cap: maxBackoffs}
}

// Recycle replaces sessions that have become old, between calls and never during
// one. What a session held is lost with it, except that a shared server's next
// session is connected before its last one goes. Zero fields are off.
type Recycle struct {
	// MaxLifetime is how long a session may be used; up to a tenth of it is taken
	// off at random, so that not all go at once.
	MaxLifetime time.Duration
	// MaxCalls is how many tool calls it may make.
	MaxCalls int
	// MaxRSS is how many bytes of memory its process tree may use, looked at
	// every ten seconds. Linux only.
	MaxRSS int64
}

// stateConfig is what the state needs of the options.
func (o *Options) stateConfig() poolstate.Config {
	return poolstate.Config{
		MaxSessions: o.MaxSessions,
		MaxLifetime: o.Recycle.MaxLifetime,
		MaxCalls:    o.Recycle.MaxCalls,
		Backoff:     o.Backoff.config(),
	}
}

// policyOf is how the sessions of a server are kept.
func (o *Options) policyOf(srv *Server) poolstate.Policy {
	return poolstate.Policy{
		Remote:      srv.IsHTTP(),
		Exclusive:   srv.Policy.Mode == Exclusive,
		Shared:      srv.Policy.Mode == Shared,
		Concurrent:  srv.Policy.Concurrent,
		Processes:   srv.Policy.Processes,
		Spares:      srv.Policy.Spares,
		Bound:       srv.PrivateDir == DirPerScope,
		Probe:       o.probes(srv),
		IdleTimeout: cmp.Or(srv.Policy.IdleTimeout, o.IdleTimeout),
		TermFirst:   srv.Policy.TermFirst,
		Owner:       srv.Policy.BeforeClose, // which goes to no heap for it
	}
}

// probes reports whether a session of srv is kept, and probed, when a call of it was
// given up: one caller's timeout is no reason to end what all others use.
func (o *Options) probes(srv *Server) bool {
	if srv.Policy.Mode == Shared && srv.Policy.Concurrent {
		return true
	}
	return cmp.Or(srv.Policy.AfterAbandon, o.AfterAbandon) == AbandonProbe
}

// rootsChanged tells a server that its roots have changed, if it asked for them while its
// session was nobody's. The caller borrows c.
func (c *conn) rootsChanged(ctx context.Context) {
	if !c.nobodysRoots.Load() || c.st.Key.Scope == "" || !c.nobodysRoots.CompareAndSwap(true, false) {
		return
	}
	if r, ok := c.client.(Requester); ok {
		// A connection that is lost is found by what it was borrowed for.
		_ = c.safely("Client.Notify", func() error { return r.Notify(ctx, mcp.MethodNotificationRootsListChanged, nil) })
	}
}

package cluster

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/mcppool/mcppool"
)

// Options are the settings of a [Node]. Zero is the default given with each; [Join] copies them.
type Options struct {
	// Name is what people call the replica, in errors, logs and [mcppool.Served]; default:
	// its incarnation. It need not be unique.
	Name string
	// Secret is what all replicas of a cluster share, 16 bytes at least: it keeps scopes and
	// configurations unreadable in the directory, and signs what replicas ask of each other. Required.
	Secret []byte
	// Listen is the address at which the node serves other replicas, such as ":7946".
	// Empty means that [Node.PeerHandler] is mounted by the program itself, on a server
	// that speaks HTTP/2.
	Listen string
	// Advertise is the host and port by which other replicas reach this one; default:
	// the address that Listen has come to, which serves one machine.
	Advertise string
	// TLS is the configuration of both ends of connections between replicas: with certificates,
	// RootCAs, ClientCAs and ClientAuth for mutual TLS. Nil is plain HTTP/2 for a network
	// that nobody else can read: configurations, secrets included, and results cross it.
	TLS *tls.Config
	// TTL is how long a replica that is silent is taken for alive; default 15 s. What a
	// killed one ran can run elsewhere after that.
	TTL time.Duration
	// Renew is how often the lease is renewed; default TTL/5.
	Renew time.Duration
	// Margin is how much sooner than others a replica takes its own lease for over; default
	// TTL/10. It bounds by how much the clocks' rates may differ.
	Margin time.Duration
	// RoutesOnly makes the replica run no session: it sends each call to one that does.
	RoutesOnly bool
	// Capacity returns how many scopes the replica runs and may run; new ones go elsewhere
	// once it is full. Default: what it runs, without a limit. It must not block.
	Capacity func() (used, limit int)
	// OnFence is what becomes of sessions when the lease is over; default Park.
	OnFence FencePolicy
	// Strict confirms the lease with the directory before each call is sent: a pause of the
	// whole machine at any moment but that of the send is noticed, at the price of a round trip.
	Strict bool
	// DuringOutage is what becomes of calls when the directory is out of reach for longer
	// than the lease; default Refuse.
	DuringOutage OutagePolicy
	// MaxMessage bounds what replicas send each other in one message, in bytes; default 64 MiB.
	MaxMessage int64
	// Logger gets a line for each event of the replica's life; default: none.
	Logger *slog.Logger
}

// FencePolicy says what becomes of a replica's sessions when its lease is over.
type FencePolicy uint8

const (
	// Park keeps their processes, without calls, until the replica knows whether
	// others took the scopes over.
	Park FencePolicy = iota
	// Kill ends them at once.
	Kill
)

// OutagePolicy says what becomes of calls when nobody can say whose a scope is.
type OutagePolicy uint8

const (
	// Refuse keeps calls waiting until their ctx ends, or the directory is back.
	Refuse OutagePolicy = iota
	// ServeLocal goes on with the scopes that the replica had: a scope may have two
	// owners then, each with a state of its own.
	ServeLocal
)

// resolved is a copy of o with every default filled in, or why it can't be.
func (o *Options) resolved() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	refuse := func(field, reason string) (Options, error) {
		return r, &mcppool.ConfigError{Field: "cluster.Options." + field, Reason: reason}
	}
	if r.TTL == 0 {
		r.TTL = 15 * time.Second
	}
	if r.Renew == 0 {
		r.Renew = r.TTL / 5
	}
	if r.Margin == 0 {
		r.Margin = r.TTL / 10
	}
	if r.MaxMessage == 0 {
		r.MaxMessage = 64 << 20
	}
	switch {
	case len(r.Secret) < 16:
		return refuse("Secret", "is shorter than 16 bytes")
	case r.TTL < 100*time.Millisecond:
		return refuse("TTL", "is shorter than 100 ms")
	case r.Renew < 0 || r.Renew > r.TTL/2:
		return refuse("Renew", "is negative or longer than half of TTL: one lost renewal would cost the lease")
	case r.Margin < 0 || r.Margin > r.TTL/2:
		return refuse("Margin", "is negative or longer than half of TTL")
	case r.MaxMessage < 0:
		return refuse("MaxMessage", "is negative")
	case r.Listen == "" && r.Advertise == "":
		return refuse("Listen", "is empty, and so is Advertise: other replicas can't reach this one")
	case r.OnFence > Kill:
		return refuse("OnFence", "is not a policy")
	case r.DuringOutage > ServeLocal:
		return refuse("DuringOutage", "is not a policy")
	}
	r.Secret = append([]byte(nil), r.Secret...)
	if r.TLS != nil {
		r.TLS = r.TLS.Clone()
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	return r, nil
}

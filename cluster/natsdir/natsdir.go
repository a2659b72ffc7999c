package natsdir

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options are the settings of a [Directory]. Zero means the default given with each.
type Options struct {
	// Bucket is the key-value bucket's name, letters, digits, - and _; default "mcppool".
	// Two clusters on one NATS server need two.
	Bucket string
	// Replicas is on how many nodes of a NATS cluster the bucket is kept: 1, 3 or 5;
	// default 1. It is looked at when the bucket is made, and must be that of a bucket
	// that exists.
	Replicas int
	// Memory keeps the bucket in memory: it is gone with the NATS server, and the
	// replicas make it anew.
	Memory bool
	// Timeout bounds each request to the server; default 1 s. An operation takes up to
	// three of them, since a request that was on its way to a node that died is never
	// answered.
	Timeout time.Duration
	// NATS are further options of the connection: credentials, TLS, a name.
	NATS []nats.Option
}

const (
	defaultBucket  = "mcppool"
	defaultTimeout = time.Second
	reconnectWait  = 250 * time.Millisecond
	tries          = 3
)

func (o *Options) bucket() string {
	if o.Bucket == "" {
		return defaultBucket
	}
	return o.Bucket
}

func (o *Options) replicas() int { return max(o.Replicas, 1) }

func (o *Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (o *Options) check() error {
	switch {
	case !bucketName.MatchString(o.bucket()):
		return &ConfigError{"Options.Bucket", "may hold letters, digits, - and _ only"}
	case o.Replicas < 0 || o.Replicas > 5:
		return &ConfigError{"Options.Replicas", "is not between 1 and 5"}
	case o.Timeout < 0:
		return &ConfigError{"Options.Timeout", "is negative"}
	}
	return nil
}

// Directory is a bucket of a NATS server. It is safe for use by several goroutines.
type Directory struct {
	opts Options
	nc   *nats.Conn
	js   jetstream.JetStream

	mu        sync.Mutex // protects the fields below
	stream    jetstream.Stream
	refused   error // the last permission that the server refused
	refusedAt time.Time
	closed    bool
	watches   sync.WaitGroup // added to while not closed
}

// Open connects to the server at url (several, separated by commas, for the nodes of a
// cluster), and makes the bucket unless it is there. It fails with [ErrCredentials],
// [ErrNoJetStream], [ErrPermissions], a [*SettingsError] for a bucket that was made for
// something else, or a [*ConfigError]; anything else may pass.
//
// The connection is the directory's own. It drops what it can't send now: a claim that
// arrived when its time is over would do harm.
func Open(ctx context.Context, url string, opts *Options) (*Directory, error) {
	d := &Directory{}
	if opts != nil {
		d.opts = *opts
	}
	if err := d.opts.check(); err != nil {
		return nil, err
	}
	own := []nats.Option{
		nats.Name("mcppool directory " + d.opts.bucket()),
		nats.Timeout(d.opts.timeout()),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.PingInterval(d.opts.timeout()),
		nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(d.asyncError),
	}
	nc, err := nats.Connect(url, append(own, d.opts.NATS...)...)
	if err != nil {
		return nil, fmt.Errorf("natsdir: connecting: %w", explain(err))
	}
	d.nc = nc
	if err := d.prepare(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return d, nil
}

func (d *Directory) prepare(ctx context.Context) error {
	// A request to a server without JetStream has nobody to answer it; the client says so itself.
	js, err := jetstream.New(d.nc, jetstream.WithDefaultTimeout(d.opts.timeout()))
	if err != nil {
		return fmt.Errorf("natsdir: %w", err)
	}
	d.js = js
	err = d.repeat(ctx, func(ctx context.Context) error {
		_, err := js.AccountInfo(ctx)
		return err
	})
	if err != nil {
		if denied := d.deniedBy(); denied != nil {
			err = denied
		}
		return fmt.Errorf("natsdir: asking for JetStream: %w", explain(err))
	}
	return d.ensure(ctx)
}

// asyncError is told what the server refuses after the fact.
func (d *Directory) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused, d.refusedAt = err, time.Now()
}

// deniedBy returns the permission that the server refused a moment ago, if it did: what
// was refused isn't answered.
func (d *Directory) deniedBy() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused == nil || time.Since(d.refusedAt) > 2*tries*d.opts.timeout() {
		return nil
	}
	return d.refused
}

// Close ends the connection. Operations and watches under way fail; it waits for the watches.
func (d *Directory) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.nc.Close()
	d.watches.Wait()
	return nil
}

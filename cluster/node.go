package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcppool/mcppool"
)

// Node is a replica's pool as a part of a cluster. It is used as a [*mcppool.Pool] is. It is
// made by [Join], is safe for concurrent use, and must be closed before its pool is.
type Node struct {
	pool   *mcppool.Pool
	dir    Directory
	opts   Options // resolved; never changes
	names  namer
	addr   string // by which others reach it
	client *http.Client
	server *http.Server  // nil when the program serves PeerHandler itself
	seq    atomic.Uint64 // of requests to other replicas

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup // goroutines of the node
	// renewNow asks for a renewal at once; capacity 1.
	renewNow chan struct{}
	// leasing is held during writes of the own lease: one at a time.
	leasing chan struct{}

	counts Counts // its fields are changed atomically

	mu sync.Mutex // protects the fields below
	// lease is the own one.
	lease lease
	// changed is closed, and made anew, whenever the lease, the members or the
	// generations change.
	changed  chan struct{}
	members  map[string]*member            // by incarnation
	holdings map[string]*holding           // what this replica owns or is about to, by name
	routes   map[string]string             // names to the incarnation that last ran them
	gens     map[string]uint64             // generations, by key
	acked    uint64                        // the highest revision of Generations that was acted upon
	uses     map[string]*use               // configurations that calls came with, by key
	byHash   map[uint64][]*use             // the same, by hashOf
	aways    map[string]map[*away]struct{} // calls under way elsewhere, by incarnation
	answers  map[string]*asker             // calls that other replicas may be asked something for
	windows  map[string]*window            // requests seen, by the caller's incarnation
	graceEnd time.Time                     // nobody is fenced before
	claimsAt time.Time                     // nothing is claimed before: the store may have been lost
	ready    bool                          // members and generations have been read
	closed   bool
}

// Counts counts what a node has done.
type Counts struct {
	Local     uint64 // calls that ran here for this replica's callers
	Remote    uint64 // calls that were sent to another replica, which ran them
	Served    uint64 // calls that ran here for another replica's callers
	Claims    uint64 // scopes that were nobody's
	Takeovers uint64 // scopes whose owner was gone
	Refusals  uint64 // calls of other replicas that were refused
	Parks     uint64 // times that the lease ran out
	Fenced    uint64 // other replicas that were found silent
	Lost      uint64 // calls that ended with ErrOwnerLost
}

// Join makes pool a part of the cluster whose replicas share dir. It returns once the
// replica is known to the others and knows what they closed, and fails with a
// [*mcppool.ConfigError] for options that have no meaning, with ctx's error, or with what
// the directory or the network says. The node uses pool and dir until it is closed, and closes neither.
//
// Where the store is younger than the TTL, scopes can be claimed only once it isn't: replicas that
// were part of the cluster before the store was lost come first.
func Join(ctx context.Context, pool *mcppool.Pool, dir Directory, opts *Options) (*Node, error) {
	o, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	n := &Node{
		pool: pool, dir: dir, opts: o, names: namer{o.Secret},
		renewNow: make(chan struct{}, 1), leasing: make(chan struct{}, 1),
		changed: make(chan struct{}),
		members: map[string]*member{}, holdings: map[string]*holding{}, routes: map[string]string{},
		gens: map[string]uint64{}, uses: map[string]*use{}, byHash: map[uint64][]*use{}, aways: map[string]map[*away]struct{}{}, answers: map[string]*asker{}, windows: map[string]*window{},
	}
	n.life, n.end = context.WithCancel(context.Background())
	n.client = n.newClient()
	if err := n.listen(); err != nil {
		n.end()
		return nil, err
	}
	if err := n.enter(ctx); err != nil {
		n.end()
		return nil, errors.Join(err, n.shut())
	}
	n.wg.Go(n.watchLeases)
	n.wg.Go(n.watchGenerations)
	n.wg.Go(n.keepLease)
	n.wg.Go(n.sweep)
	if err := n.await(ctx, func() bool { return n.ready }); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// listen serves other replicas, if the node is to.
func (n *Node) listen() error {
	n.addr = n.opts.Advertise
	if n.opts.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", n.opts.Listen)
	if err != nil {
		return &mcppool.ConfigError{Field: "cluster.Options.Listen", Reason: "can't be served: " + err.Error()}
	}
	if n.addr == "" {
		n.addr = l.Addr().String()
	}
	n.server = n.newServer()
	n.wg.Go(func() {
		if n.opts.TLS != nil {
			_ = n.server.ServeTLS(l, "", "") // until it is closed
		} else {
			_ = n.server.Serve(l)
		}
	})
	return nil
}

// enter makes the first lease: others see it before this replica reads what they
// closed, so that who closes something meanwhile waits for it.
func (n *Node) enter(ctx context.Context) error {
	age, err := n.dir.Age(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.claimsAt = time.Now().Add(n.opts.TTL - age)
	n.graceEnd = time.Now().Add(n.opts.TTL)
	n.mu.Unlock()
	return n.newLease(ctx)
}

// tellLocked wakes those in await. The caller must hold n.mu.
func (n *Node) tellLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// await waits until is, which is called with n.mu held, is true.
func (n *Node) await(ctx context.Context, is func() bool) error {
	for {
		n.mu.Lock()
		yes, changed := is(), n.changed
		n.mu.Unlock()
		if yes {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.life.Done():
			return ErrClosed
		}
	}
}

// pause waits for d, or until ctx or the node ends.
func (n *Node) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.life.Done():
		return ErrClosed
	}
}

// Close ends the node: calls under way fail with [ErrOwnerLost], the sessions of its scopes are
// closed, and the lease is released, if the directory can be reached, so that others may take over
// at once. For an end without lost calls, [Node.Drain] comes first. The pool stays open.
func (n *Node) Close() error {
	n.mu.Lock()
	first := !n.closed
	n.closed = true
	n.tellLocked()
	n.mu.Unlock()
	if first {
		n.dropAll(ErrClosed)
		ctx, cancel := context.WithTimeout(context.Background(), n.opts.TTL)
		n.release(ctx)
		cancel()
	}
	n.end()
	err := n.shut()
	n.wg.Wait()
	return err
}

// shut ends the connections with other replicas.
func (n *Node) shut() error {
	var err error
	if n.server != nil {
		err = n.server.Close()
	}
	n.client.CloseIdleConnections()
	return err
}

func (n *Node) count(c *uint64) { atomic.AddUint64(c, 1) }

// Counts returns what the node has done so far.
func (n *Node) Counts() Counts {
	c, own := Counts{}, &n.counts
	for _, f := range [...]struct{ to, from *uint64 }{
		{&c.Local, &own.Local}, {&c.Remote, &own.Remote}, {&c.Served, &own.Served}, {&c.Claims, &own.Claims},
		{&c.Takeovers, &own.Takeovers}, {&c.Refusals, &own.Refusals}, {&c.Parks, &own.Parks},
		{&c.Fenced, &own.Fenced}, {&c.Lost, &own.Lost},
	} {
		*f.to = atomic.LoadUint64(f.from)
	}
	return c
}

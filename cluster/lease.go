package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// lease is a replica's own: what says that what it owns is still its own.
type lease struct {
	incarnation string
	revision    uint64
	state       leaseState // live or drain; released once it is over for good
	// deadline is until when nobody can have fenced it: counted from before the last renewal
	// that succeeded was sent.
	deadline time.Time
	// confirmed is when that was. Its wall clock tells of pauses that the monotonic one slept through.
	confirmed time.Time
	// parked is set from when the deadline has passed, or the lease was found to be
	// lost, until it is known what is left of it. Nothing is sent meanwhile.
	parked bool
}

// errLeaseLost: others have fenced the lease, or it is gone from the store.
var (
	errLeaseFenced = errors.New("cluster: the lease was fenced by other replicas")
	errLeaseGone   = errors.New("cluster: the lease is gone from the directory")
	errLeaseOver   = errors.New("the lease is over")
)

// op bounds one operation on the directory.
func (n *Node) op(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(time.Second, n.opts.TTL/3))
}

// recordLocked is what the own lease says now. The caller must hold n.mu.
func (n *Node) recordLocked() leaseRecord {
	r := leaseRecord{
		Version: protocolVersion, Name: n.opts.Name, Addr: n.addr, State: n.lease.state,
		Host: !n.opts.RoutesOnly, Scopes: len(n.holdings), Used: len(n.holdings), Ack: n.acked,
	}
	return r
}

func (n *Node) record() []byte {
	used, limit := 0, 0
	if n.opts.Capacity != nil {
		used, limit = n.opts.Capacity()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.recordLocked()
	if n.opts.Capacity != nil {
		r.Used, r.Limit = used, limit
	}
	return encode(r)
}

// newLease makes a lease with an incarnation of its own.
func (n *Node) newLease(ctx context.Context) error {
	if err := n.lock(ctx); err != nil {
		return err
	}
	defer n.unlock()
	n.mu.Lock()
	if n.lease.state == "" {
		n.lease.state = leaseLive
	}
	n.mu.Unlock()
	value, inc, sent := n.record(), newIncarnation(), time.Now()
	opCtx, cancel := n.op(ctx)
	defer cancel()
	rev, err := n.dir.Create(opCtx, Leases, inc, value)
	if err != nil {
		return err // one that was made all the same is nobody's, and fenced by others
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lease.incarnation = inc
	n.renewedLocked(rev, sent)
	n.tellLocked()
	return nil
}

// renewedLocked notes a renewal that was sent then. The caller must hold n.mu.
func (n *Node) renewedLocked(revision uint64, sent time.Time) {
	l := &n.lease
	if !l.confirmed.IsZero() && sent.Sub(l.confirmed) > n.opts.TTL/2 {
		n.graceEnd = sent.Add(n.opts.TTL) // others may have been cut off as well
	}
	l.revision, l.confirmed, l.deadline = revision, sent, sent.Add(n.opts.TTL-n.opts.Margin)
}

// lock begins a write of the own lease; unlock ends it.
func (n *Node) lock(ctx context.Context) error {
	select {
	case n.leasing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) unlock() { <-n.leasing }

// renew renews the own lease. It fails with errLeaseFenced and errLeaseGone when it is lost for
// certain; after any other error nobody knows.
func (n *Node) renew(ctx context.Context) error {
	if err := n.lock(ctx); err != nil {
		return err
	}
	defer n.unlock()
	n.mu.Lock()
	l := n.lease
	n.mu.Unlock()
	if l.state.over() {
		return errLeaseFenced
	}
	for range 3 {
		ctx, cancel := n.op(ctx)
		defer cancel()
		value, sent := n.record(), time.Now()
		rev, err := n.dir.Update(ctx, Leases, l.incarnation, value, l.revision)
		if err == nil {
			n.mu.Lock()
			n.renewedLocked(rev, sent)
			n.tellLocked()
			n.mu.Unlock()
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		rec, err := n.dir.Get(ctx, Leases, l.incarnation)
		switch {
		case errors.Is(err, ErrNotFound):
			return errLeaseGone
		case err != nil:
			return err
		case decode[leaseRecord](rec.Value).State.over():
			return errLeaseFenced
		}
		l.revision = rec.Revision // of a renewal whose answer was lost
	}
	return errors.New("cluster: the lease's record keeps changing")
}

// keepLease renews the lease until the node ends.
func (n *Node) keepLease() {
	for {
		wait := n.opts.Renew
		err := n.keepOnce()
		if err != nil {
			n.log(slog.LevelWarn, n.name(), "lease not renewed", slog.String("err", err.Error()))
			wait = n.opts.Renew / 4
		}
		n.mu.Lock()
		if left := time.Until(n.lease.deadline); !n.lease.parked && left < wait {
			wait = max(left, 0)
		}
		n.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-n.renewNow:
		case <-n.life.Done():
		}
		t.Stop()
		if n.life.Err() != nil {
			return
		}
	}
}

// keepOnce renews the lease once, and does what follows from how that ended.
func (n *Node) keepOnce() error {
	n.mu.Lock()
	l, over := n.lease, n.closed
	n.mu.Unlock()
	if over || l.state.over() {
		return nil
	}
	ctx, cancel := n.life, func() {}
	if !l.parked {
		ctx, cancel = context.WithDeadline(n.life, l.deadline)
	}
	err := n.renew(ctx)
	cancel()
	late := !time.Now().Before(l.deadline)
	switch {
	case errors.Is(err, errLeaseFenced) || errors.Is(err, errLeaseGone):
		n.park(err)
		return n.reenter(errors.Is(err, errLeaseGone) && !late && !l.parked)
	case err != nil && late:
		n.park(err)
		return err
	case err != nil:
		return err
	case l.parked || late: // nobody fenced it, hence nobody took a scope
		n.park(errLeaseOver)
		return n.reenter(false)
	}
	return nil
}

// park stops all sending, and ends the calls under way, whose outcome nobody will know.
func (n *Node) park(why error) {
	n.mu.Lock()
	if n.lease.parked {
		n.mu.Unlock()
		return
	}
	n.lease.parked = true
	serve := n.opts.DuringOutage == ServeLocal
	if !serve {
		for _, h := range n.holdings {
			h.loseLocked(&OwnerLostError{n.nameLocked(), why})
		}
	}
	n.tellLocked()
	n.mu.Unlock()
	n.count(&n.counts.Parks)
	n.log(slog.LevelWarn, n.name(), "the lease is over; sessions are parked", slog.String("err", why.Error()))
	if n.opts.OnFence == Kill && !serve {
		n.dropAll(why)
	}
}

// release ends the lease in order: others may take over at once.
func (n *Node) release(ctx context.Context) {
	n.mu.Lock()
	if !n.lease.parked && !n.lease.state.over() {
		n.lease.state = leaseReleased
	}
	released := n.lease.state == leaseReleased
	l := n.lease
	n.mu.Unlock()
	if !released || n.lock(ctx) != nil {
		return // it is for the others to fence
	}
	defer n.unlock()
	ctx, cancel := n.op(ctx)
	defer cancel()
	value := n.record()
	for range 3 {
		_, err := n.dir.Update(ctx, Leases, l.incarnation, value, l.revision)
		if !errors.Is(err, ErrConflict) {
			return
		}
		rec, err := n.dir.Get(ctx, Leases, l.incarnation)
		if err != nil || decode[leaseRecord](rec.Value).State.over() {
			return
		}
		l.revision = rec.Revision
	}
}

// log writes a line of a replica's life.
func (n *Node) log(level slog.Level, replica, msg string, attrs ...slog.Attr) {
	n.opts.Logger.LogAttrs(context.Background(), level, "cluster: "+msg, append(attrs, slog.String("replica", replica))...)
}

// name is what people call this replica.
func (n *Node) name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nameLocked()
}

func (n *Node) nameLocked() string {
	if n.opts.Name != "" {
		return n.opts.Name
	}
	return n.lease.incarnation
}

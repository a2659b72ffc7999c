package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
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
			n.opts.Logger.Warn("cluster: lease not renewed", "replica", n.name(), "err", err.Error())
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
	n.opts.Logger.Warn("cluster: the lease is over; sessions are parked", "replica", n.name(), "err", why.Error())
	if n.opts.OnFence == Kill && !serve {
		n.dropAll(why)
	}
}

// reenter makes what is left of a parked replica work again: its own lease where that
// is still good, else a new one, under which it takes over what it had and nobody else took.
// lostStore says that the records may be gone with a store in which nobody can have
// claimed anything yet.
func (n *Node) reenter(lostStore bool) error {
	ctx := n.life
	n.mu.Lock()
	asleep := time.Since(n.lease.confirmed) > garbageAge/2        // others may have forgotten that it was ever there
	fine := n.lease.parked && time.Now().Before(n.lease.deadline) // it was just renewed
	n.mu.Unlock()
	if asleep {
		n.dropAll(errLeaseOver)
	}
	if !fine || lostStore {
		if err := n.renewInto(ctx, &lostStore); err != nil {
			return err
		}
	}
	if err := n.readGenerations(ctx); err != nil {
		return err
	}
	if err := n.resumeAll(ctx, lostStore); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lease.parked = false
	n.tellLocked()
	n.opts.Logger.Info("cluster: the replica serves again", "replica", n.nameLocked(), "scopes", len(n.holdings))
	return nil
}

// renewInto makes a new lease in place of a lost one.
func (n *Node) renewInto(ctx context.Context, lostStore *bool) error {
	opCtx, cancel := n.op(ctx)
	age, err := n.dir.Age(opCtx)
	cancel()
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.claimsAt = time.Now().Add(n.opts.TTL - age)
	n.routes = map[string]string{}
	n.mu.Unlock()
	*lostStore = *lostStore && age < n.opts.TTL
	return n.newLease(ctx)
}

// resumeAll takes what this replica holds over into its present incarnation, and ends what
// others took meanwhile.
func (n *Node) resumeAll(ctx context.Context, lostStore bool) error {
	n.mu.Lock()
	inc := n.lease.incarnation
	var old []*holding
	for _, h := range n.holdings {
		if h.held && h.incarnation != inc {
			old = append(old, h)
		}
	}
	n.mu.Unlock()
	renewed := time.Now()
	for chunk := range slices.Chunk(old, 64) {
		errs := make([]error, len(chunk))
		var wg sync.WaitGroup
		for i, h := range chunk {
			wg.Go(func() { errs[i] = n.resume(ctx, h, inc, lostStore) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if time.Since(renewed) > n.opts.Renew {
			if err := n.renew(ctx); err != nil {
				return err
			}
			renewed = time.Now()
		}
	}
	return nil
}

// resume takes one scope over from the last incarnation. It ends the scope's sessions when
// that isn't to be had any more.
func (n *Node) resume(ctx context.Context, h *holding, inc string, lostStore bool) error {
	ctx, cancel := n.op(ctx)
	defer cancel()
	rec, err := n.dir.Get(ctx, Owners, h.name)
	n.mu.Lock()
	same := rec.Revision == h.epoch && string(rec.Value) == string(h.value)
	mine := string(rec.Value) == string(h.next)
	releasing := h.releasing
	if h.next == nil || decode[ownerRecord](h.next).Incarnation != inc {
		h.next, mine = encode(ownerRecord{protocolVersion, inc, newIncarnation()}), false
	}
	next := h.next
	n.mu.Unlock()
	var rev uint64
	switch {
	case releasing:
		err = ErrConflict
	case errors.Is(err, ErrNotFound) && lostStore:
		rev, err = n.dir.Create(ctx, Owners, h.name, next)
	case err != nil:
	case mine: // by a write whose answer was lost
		rev, err = n.dir.Update(ctx, Owners, h.name, next, rec.Revision)
	case same:
		rev, err = n.dir.Update(ctx, Owners, h.name, next, rec.Revision)
	default:
		err = ErrConflict
	}
	switch {
	case err == nil:
		n.mu.Lock()
		h.epoch, h.value, h.incarnation, h.next = rev, next, inc, nil
		n.mu.Unlock()
		return nil
	case errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) && !lostStore:
		n.drop(h, errLeaseFenced)
		return nil
	case errors.Is(err, ErrExists):
		return err // perhaps by a write of ours: to be looked at again
	default:
		return err
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

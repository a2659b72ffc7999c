package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool"
)

// CallTool is [mcppool.Pool.CallTool] in the session that the scope has on whichever replica owns
// it, and else on this one, or one that has room. Besides its errors there is
// [ErrOwnerLost]. What is told in [mcppool.Served] is of the replica that ran the call. Check and
// OnProgress are this replica's; so are the Handlers that answer what the server asks,
// of the call or of this replica's pool, as far as the owner's pool has them too. Gate is
// asked only when the call runs here.
func (n *Node) CallTool(ctx context.Context, srv mcppool.Server, call mcppool.Call) (*mcp.CallToolResult, error) {
	u := n.useOf(&srv)
	defer n.doneWith(u)
	job := job{srv: &srv, call: &call, use: u, unit: n.unitOf(&srv, call.Scope, u), generation: n.generation(u)}
	var res *mcp.CallToolResult
	err := n.somewhere(ctx, &job, func(at spot) (err error) {
		if at.inc != "" {
			res, err = n.callThere(ctx, &job, at)
			return err
		}
		res, err = n.callHere(ctx, &job, at.holding)
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// job is what is to be run, here or elsewhere.
type job struct {
	unit
	srv        *mcppool.Server
	call       *mcppool.Call
	use        *use
	generation uint64 // of srv, as it was when the caller took it from its configuration
	hops       int
}

// spot is where something is to run: here, in a holding unless any replica may run it; or at inc.
type spot struct {
	holding *holding
	inc     string
	claim   bool // it may claim the unit
}

// somewhere runs f where the job belongs, again wherever it was refused, until ctx ends.
func (n *Node) somewhere(ctx context.Context, j *job, f func(spot) error) error {
	for attempt := 0; ; attempt++ {
		at, err := n.locate(ctx, j)
		if err == nil {
			err = f(at)
		}
		why := asRefusal(err)
		if why == "" {
			return err
		}
		n.mu.Lock()
		if n.routes[j.name] == at.inc {
			delete(n.routes, j.name)
		}
		n.mu.Unlock()
		if attempt == 0 && why == notOwner {
			continue // the route was old
		}
		if err := n.pause(ctx, min(time.Duration(attempt+1)*2*time.Millisecond, n.opts.TTL/20)); err != nil {
			return mcppool.MarkNotSent(errors.Join(err, why))
		}
	}
}

// usableLocked is why nothing may be sent now; nil when it may. The caller must hold n.mu.
func (n *Node) usableLocked() error {
	switch {
	case n.closed:
		return ErrClosed
	case n.lease.parked || n.lease.state.over() || !time.Now().Before(n.lease.deadline):
		return fenced
	}
	return nil
}

// locate finds where a job is to run, and claims its unit where that is nobody's.
func (n *Node) locate(ctx context.Context, j *job) (spot, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return spot{}, mcppool.MarkNotSent(ErrClosed)
	}
	h, inc := n.holdings[j.name], n.routes[j.name]
	if m := n.members[inc]; m == nil || m.record.State.over() {
		inc = ""
	}
	n.mu.Unlock()
	switch {
	case j.name == "" && !n.opts.RoutesOnly:
		return spot{}, nil
	case j.name == "":
		return n.elsewhere(ctx)
	case h != nil:
		return n.awaitHolding(ctx, h)
	case inc != "":
		return spot{inc: inc}, nil
	}
	opCtx, cancel := n.op(ctx)
	defer cancel()
	rec, err := n.dir.Get(opCtx, Owners, j.name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return spot{}, n.waits(ctx, err)
	}
	if err == nil {
		owner := decode[ownerRecord](rec.Value).Incarnation
		dead, err := n.isDead(opCtx, owner)
		n.mu.Lock()
		mine := owner == n.lease.incarnation
		if err == nil && !dead && !mine {
			n.routes[j.name] = owner
		}
		n.mu.Unlock()
		switch {
		case err != nil:
			return spot{}, n.waits(ctx, err)
		case mine:
			return n.own(ctx, j)
		case !dead:
			return spot{inc: owner}, nil
		}
	}
	if _, here := n.place(); here {
		return n.own(ctx, j)
	}
	return n.elsewhere(ctx)
}

// waits is the refusal that stands for a failure of the directory.
func (n *Node) waits(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return mcppool.MarkNotSent(errors.Join(ctx.Err(), err))
	}
	return errors.Join(fenced, err)
}

// elsewhere is another replica that may take a job.
func (n *Node) elsewhere(ctx context.Context) (spot, error) {
	inc, here := n.place()
	switch {
	case here, inc != "":
		return spot{inc: inc, claim: true}, nil
	case ctx.Err() != nil:
		return spot{}, mcppool.MarkNotSent(ctx.Err())
	default:
		return spot{}, busy
	}
}

// own claims a unit for this replica, together with whoever does so already.
func (n *Node) own(ctx context.Context, j *job) (spot, error) {
	n.mu.Lock()
	h := n.holdings[j.name]
	if err := n.usableLocked(); h == nil && err != nil {
		n.mu.Unlock()
		return spot{}, err
	}
	if h == nil {
		h = &holding{
			unit: j.unit, changed: make(chan struct{}), calls: map[*running]struct{}{},
			sessions: map[string]struct{}{}, scopes: map[string]string{},
		}
		n.holdings[j.name] = h
		delete(n.routes, j.name)
		n.wg.Go(func() { n.claim(h) })
	}
	n.mu.Unlock()
	return n.awaitHolding(ctx, h)
}

// awaitHolding waits until a unit is this replica's, and may be used.
func (n *Node) awaitHolding(ctx context.Context, h *holding) (spot, error) {
	for {
		n.mu.Lock()
		ok := h.held && !h.releasing
		parked, err := ok && !n.mayServeLocked(), h.err
		own, all := h.changed, n.changed
		closed := n.closed
		n.mu.Unlock()
		switch {
		case err != nil:
			return spot{}, asErr(err)
		case closed:
			return spot{}, mcppool.MarkNotSent(ErrClosed)
		case ok && !parked:
			return spot{holding: h}, nil
		}
		if !parked {
			all = nil
		}
		select {
		case <-own:
		case <-all:
		case <-ctx.Done():
			return spot{}, mcppool.MarkNotSent(ctx.Err())
		case <-n.life.Done():
			return spot{}, mcppool.MarkNotSent(ErrClosed)
		}
	}
}

// asErr is what those get who waited for a unit that isn't this replica's.
func asErr(err error) error {
	if asRefusal(err) != "" || errors.Is(err, ErrClosed) {
		return err
	}
	return errors.Join(notOwner, err)
}

// mayServeLocked reports whether held units may be used. The caller must hold n.mu.
func (n *Node) mayServeLocked() bool {
	return n.usableLocked() == nil || n.opts.DuringOutage == ServeLocal && !n.closed && !n.lease.state.over()
}

// callHere runs a job in this replica's pool.
func (n *Node) callHere(ctx context.Context, j *job, h *holding) (*mcp.CallToolResult, error) {
	call := *j.call
	var served mcppool.Served
	call.Served, call.Check = &served, n.check(j)
	b, ctx, err := n.begin(ctx, j, h)
	if err != nil {
		return nil, err
	}
	if h != nil {
		gate := call.Gate
		call.Gate = func(in mcppool.Served) error {
			if err := n.gate(b); err != nil || gate == nil {
				return err
			}
			return gate(in)
		}
	}
	res, err := n.pool.CallTool(ctx, *j.srv, call)
	served.Node, served.Hops = n.opts.Name, j.hops
	if served.Node == "" {
		served.Node = n.name()
	}
	if j.call.Served != nil && served.SessionID != "" {
		*j.call.Served = served
	}
	if err := n.finish(b, served.SessionID, err); err != nil {
		return nil, err
	}
	if j.hops == 0 {
		n.count(&n.counts.Local)
	} else {
		n.count(&n.counts.Served)
	}
	return res, nil
}

// check reports whether the configuration of a job is what it was when the job began.
func (n *Node) check(j *job) func() bool {
	check := j.call.Check
	return func() bool {
		return n.generation(j.use) == j.generation && (check == nil || check())
	}
}

// borrow is a use of a holding by one call.
type borrow struct {
	h     *holding
	epoch uint64
	run   *running
}

// begin counts a call of a holding. The ctx that it returns ends when the holding is lost.
func (n *Node) begin(ctx context.Context, j *job, h *holding) (*borrow, context.Context, error) {
	if h == nil {
		return nil, ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b := &borrow{h: h, run: &running{cancel: cancel}}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.held || h.releasing || !n.mayServeLocked() {
		cancel(nil)
		return nil, nil, fenced
	}
	b.epoch = h.epoch
	h.calls[b.run] = struct{}{}
	h.sticky = h.sticky || j.srv.PrivateDir == mcppool.DirPerScope
	if h.srv != nil && j.call.Scope != "" {
		h.scopes[n.names.scope(j.call.Scope)] = j.call.Scope
	}
	return b, ctx, nil
}

// finish ends a call, and says what its caller gets: no success that may not have been the
// owner's to give.
func (n *Node) finish(b *borrow, session string, err error) error {
	if b == nil {
		return err
	}
	b.run.cancel(nil)
	unconfirmed := err == nil && n.slept() && n.renew(n.life) != nil
	n.mu.Lock()
	delete(b.h.calls, b.run)
	b.h.last = time.Now()
	if session != "" {
		b.h.sessions[session] = struct{}{}
	}
	lost := b.run.lost
	if lost == nil && (unconfirmed || !n.mayServeLocked()) && n.lease.state != leaseReleased {
		lost = &OwnerLostError{n.nameLocked(), errLeaseOver}
	}
	if n.lease.state == leaseDrain {
		b.h.tellLocked() // which waits for it
	}
	n.mu.Unlock()
	switch {
	case lost == nil || asRefusal(err) != "":
		return err
	case err != nil && mcppool.SafeToRetry(err):
		return errors.Join(fenced, err)
	}
	n.count(&n.counts.Lost)
	return lost
}

// slept reports whether the machine was suspended since the lease was last confirmed: the
// monotonic clock, by which it runs out, may have stood still meanwhile.
func (n *Node) slept() bool {
	n.mu.Lock()
	since := n.lease.confirmed
	n.mu.Unlock()
	now := time.Now()
	return now.Round(0).Sub(since.Round(0))-now.Sub(since) >= n.opts.Margin
}

// gate is asked right before a call is sent: whether the unit is this replica's at this very moment.
func (n *Node) gate(b *borrow) error {
	n.mu.Lock()
	err := n.usableLocked()
	if err != nil && n.mayServeLocked() {
		err = nil
	}
	if !b.h.held || b.h.epoch != b.epoch || b.run.lost != nil {
		err = fenced
	}
	n.mu.Unlock()
	if err != nil {
		return fenced
	}
	if !n.slept() && !n.opts.Strict {
		return nil
	}
	if n.renew(n.life) != nil {
		return fenced
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !b.h.held || b.h.epoch != b.epoch || n.usableLocked() != nil {
		return fenced
	}
	return nil
}

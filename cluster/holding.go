package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/mcppool/mcppool"
)

// unit is what has one owner: a scope, or all scopes of an exclusive server.
type unit struct {
	name  string          // its key in the directory
	scope string          // empty for a server
	srv   *mcppool.Server // nil for a scope
}

// unitOf is what a call belongs to; its name is empty when any replica may run it.
func (n *Node) unitOf(srv *mcppool.Server, scope string, u *use) unit {
	switch {
	case srv.Policy.Mode == mcppool.Exclusive:
		return unit{name: u.key, srv: &u.srv}
	case scope == "" || srv.Policy.Mode == mcppool.Shared:
		return unit{}
	default:
		return unit{name: n.names.scope(scope), scope: scope}
	}
}

// holding is a unit that this replica owns, or is about to. Its node's mu protects it.
type holding struct {
	unit
	held        bool   // it is owned; false while it is claimed
	incarnation string // of the lease under which it is
	epoch       uint64 // revision of its record
	value       []byte // of its record
	next        []byte // a value that was perhaps written
	releasing   bool   // its record is being deleted
	sticky      bool   // it has a folder that outlives its sessions
	err         error  // why it isn't owned, once it is gone
	changed     chan struct{}
	calls       map[*running]struct{}
	sessions    map[string]struct{} // ids of sessions that its calls went to
	scopes      map[string]string   // of an exclusive server: those that called it, by key
	last        time.Time           // when the last call ended
}

// running is a call under way.
type running struct {
	cancel context.CancelCauseFunc
	lost   error // set when the unit was lost meanwhile
}

// tellLocked wakes those that wait for h.
func (h *holding) tellLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// loseLocked ends the calls under way.
func (h *holding) loseLocked(why error) {
	for r := range h.calls {
		r.lost = why
		r.cancel(why)
	}
	clear(h.calls)
}

// drop gives up a unit that isn't this replica's any more: its sessions end.
func (n *Node) drop(h *holding, why error) {
	n.mu.Lock()
	h.loseLocked(&OwnerLostError{n.nameLocked(), why})
	h.held = false
	n.mu.Unlock()
	h.end(n.pool) // before anybody can claim it here again
	n.mu.Lock()
	defer n.mu.Unlock()
	h.err = why
	if n.holdings[h.name] == h {
		delete(n.holdings, h.name)
	}
	h.tellLocked()
}

// end closes the sessions of a unit, with the scope's folders: its state doesn't
// move, and must not be found here by a later owner.
func (u *unit) end(pool *mcppool.Pool) {
	if u.srv != nil {
		pool.CloseServer(*u.srv)
	} else {
		pool.CloseScope(u.scope)
	}
}

func (n *Node) dropAll(why error) {
	n.mu.Lock()
	var all []*holding
	for _, h := range n.holdings {
		all = append(all, h)
	}
	n.mu.Unlock()
	for _, h := range all {
		n.drop(h, why)
	}
}

// claim makes h this replica's, if nobody that lives has it. It runs apart from the
// callers that wait for it, so that a write isn't given up halfway with one of them.
func (n *Node) claim(h *holding) {
	err := n.claimRecord(h)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil && n.closed:
		err = ErrClosed
	case err == nil && h.incarnation != n.lease.incarnation:
		err = fenced // of the last incarnation: anybody takes it over
	}
	if err != nil {
		h.err = err
		if n.holdings[h.name] == h {
			delete(n.holdings, h.name)
		}
	} else {
		h.held, h.last = true, time.Now()
	}
	h.tellLocked()
}

// claimRecord writes the owner record of h, and tries until it is known whether that is so.
func (n *Node) claimRecord(h *holding) error {
	unsure := false
	for {
		n.mu.Lock()
		inc := n.lease.incarnation
		usable := n.usableLocked() == nil
		wait := time.Until(n.claimsAt)
		n.mu.Unlock()
		if !usable && !unsure {
			return fenced
		}
		if wait > 0 {
			if err := n.pause(n.life, wait); err != nil {
				return err
			}
			continue
		}
		rev, value, err := n.tryClaim(h, inc)
		if err == nil {
			err = n.inOldStore(h, rev)
		}
		n.mu.Lock()
		changed := n.lease.incarnation != inc
		if err == nil && !changed {
			h.epoch, h.value, h.incarnation = rev, value, inc
		}
		n.mu.Unlock()
		switch {
		case err == nil && !changed:
			return nil
		case n.life.Err() != nil:
			return ErrClosed
		case err == nil || asRefusal(err) != "":
			if err == nil {
				return fenced // by the incarnation before this one: anybody takes it over
			}
			return err
		case !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound):
			unsure = true
			if err := n.pause(n.life, n.opts.TTL/50); err != nil {
				return err
			}
		}
	}
}

// inOldStore reports whether a claim counts: in a store that was just made anew, the
// scope's owner may not know yet that its records are gone, and comes first. Looked at after
// the write, since the store may be lost right before it.
func (n *Node) inOldStore(h *holding, rev uint64) error {
	ctx, cancel := n.op(n.life)
	defer cancel()
	age, err := n.dir.Age(ctx)
	if err != nil || age >= n.opts.TTL {
		return err
	}
	n.mu.Lock()
	n.claimsAt = time.Now().Add(n.opts.TTL - age)
	n.mu.Unlock()
	if err := n.dir.Delete(ctx, Owners, h.name, rev); err != nil {
		return err
	}
	return ErrConflict // to be claimed anew once it is old enough
}

// tryClaim writes the owner record once. It is refused when another replica that lives has it.
func (n *Node) tryClaim(h *holding, inc string) (uint64, []byte, error) {
	ctx, cancel := n.op(n.life)
	defer cancel()
	value := encode(ownerRecord{protocolVersion, inc, newIncarnation()})
	rec, err := n.dir.Get(ctx, Owners, h.name)
	if errors.Is(err, ErrNotFound) {
		rev, err := n.dir.Create(ctx, Owners, h.name, value)
		if err == nil {
			n.count(&n.counts.Claims)
		}
		return rev, value, err
	}
	if err != nil {
		return 0, nil, err
	}
	owner := decode[ownerRecord](rec.Value).Incarnation
	if owner != inc { // else it is ours by a write whose answer was lost
		dead, err := n.isDead(ctx, owner)
		if err != nil {
			return 0, nil, err
		}
		if !dead {
			return 0, nil, notOwner
		}
	}
	rev, err := n.dir.Update(ctx, Owners, h.name, value, rec.Revision)
	if err == nil && owner != inc {
		n.count(&n.counts.Takeovers)
	}
	return rev, value, err
}

// sweep gives back, from time to time, the units that have no session any more, so that
// the next call may run anywhere.
func (n *Node) sweep() {
	for n.pause(n.life, n.opts.Renew) == nil {
		n.fenceSilent()
		n.forgetUses()
		n.mu.Lock()
		some := len(n.holdings) > 0 && n.usableLocked() == nil
		n.mu.Unlock()
		if !some {
			continue
		}
		open := map[string]bool{}
		for s := range n.pool.Sessions() {
			open[s.ID] = true
		}
		for _, h := range n.idleHoldings(open) {
			n.giveBack(h)
		}
	}
}

// idleHoldings marks, and returns, what is to be given back.
func (n *Node) idleHoldings(open map[string]bool) (idle []*holding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.holdings {
		for id := range h.sessions {
			if !open[id] {
				delete(h.sessions, id)
			}
		}
		if h.held && (h.releasing || len(h.calls) == 0 && len(h.sessions) == 0 && !h.sticky && time.Since(h.last) > n.opts.Renew) {
			h.releasing = true
			idle = append(idle, h)
		}
	}
	return idle
}

// giveBack deletes the owner record of a unit that is marked as releasing. It reports
// whether that is done, one way or the other; where nobody knows, the unit stays marked.
func (n *Node) giveBack(h *holding) bool {
	ctx, cancel := n.op(n.life)
	defer cancel()
	err := n.dir.Delete(ctx, Owners, h.name, h.epoch)
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
		return false
	}
	n.drop(h, notOwner)
	return true
}

package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

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
	n.log(slog.LevelInfo, n.nameLocked(), "the replica serves again", slog.Int("scopes", len(n.holdings)))
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

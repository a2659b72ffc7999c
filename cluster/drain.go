package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Drain gives up, in order, what the replica runs, before a deployment ends it: it takes no new scopes, its
// own callers' go to other replicas, the scopes whose calls are over are given back at
// once, and the busy ones at the end of their call. Their state ends with them. It returns
// when nothing is left, or with ctx's error; [Node.Close] follows either way. Calls of this
// replica's callers go on to be served, by others, until then.
func (n *Node) Drain(ctx context.Context) error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return ErrClosed
	}
	n.lease.state = leaseDrain
	n.mu.Unlock()
	n.renewSoon()
	n.opts.Logger.Info("cluster: draining", "replica", n.name())
	for {
		n.mu.Lock()
		var free []*holding
		var next chan struct{}
		for _, h := range n.holdings {
			switch {
			case h.held && len(h.calls) == 0:
				h.releasing = true
				free = append(free, h)
			default:
				next = h.changed
			}
		}
		n.mu.Unlock()
		if len(free) == 0 && next == nil {
			return nil
		}
		for _, h := range free {
			h.end(n.pool)
			if err := n.awaitEnd(ctx, h); err != nil {
				return err
			}
			if !n.giveBack(h) {
				if err := n.pause(ctx, n.opts.TTL/50); err != nil {
					return err
				}
			}
		}
		if len(free) > 0 {
			continue
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitEnd waits until the processes of a unit have ended, so that the next owner finds
// what only one can have, such as a browser profile, free.
func (n *Node) awaitEnd(ctx context.Context, h *holding) error {
	for {
		open := false
		n.mu.Lock()
		mine := make(map[string]struct{}, len(h.sessions))
		for id := range h.sessions {
			mine[id] = struct{}{}
		}
		n.mu.Unlock()
		for s := range n.pool.Sessions() {
			_, yes := mine[s.ID]
			open = open || yes
		}
		if !open {
			return nil
		}
		if err := n.pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// Alive answers 200 as long as the node does its work, and 503 with the reason when it is
// closed: for a liveness probe. A replica that is cut off from the directory is alive.
func (n *Node) Alive() http.Handler {
	return n.health(func() error {
		if n.closed {
			return ErrClosed
		}
		return nil
	})
}

// Ready answers 200 when calls that come to this replica can be served, and 503 with the reason
// when not: for a readiness probe.
func (n *Node) Ready() http.Handler {
	return n.health(func() error {
		switch err := n.usableLocked(); {
		case err == ErrClosed:
			return err
		case err != nil:
			return fmt.Errorf("the lease is over since %s: the directory can't be reached, or others fenced this replica",
				time.Since(n.lease.deadline).Round(time.Millisecond))
		case n.lease.state == leaseDrain:
			return fmt.Errorf("draining: %d scopes are left", len(n.holdings))
		case n.opts.RoutesOnly && len(n.hostsLocked()) == 0:
			return fmt.Errorf("no replica that runs sessions is known")
		}
		return nil
	})
}

// health serves what is wrong, which is looked at with n.mu held.
func (n *Node) health(wrong func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		err := wrong()
		n.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

package cluster

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mcppool/mcppool"
)

// use is a configuration that calls came with. Its node's mu protects last and refs.
type use struct {
	srv          mcppool.Server
	key, command string
	last         time.Time
	refs         int // calls under way
	generation   uint64
}

var seed = maphash.MakeSeed()

// hashOf tells most configurations apart, and cheaply.
func hashOf(s *mcppool.Server) uint64 {
	h := maphash.String(seed, s.Command) + 3*maphash.String(seed, s.URL) + 5*maphash.String(seed, s.Dir)
	for _, a := range s.Args {
		h = h*31 + maphash.String(seed, a)
	}
	for _, m := range []map[string]string{s.Env, s.Header} {
		for k, v := range m {
			h += maphash.String(seed, k)*31 ^ maphash.String(seed, v) // in any order
		}
	}
	return h
}

// maxUses bounds how many configurations are remembered that no call is under way of.
const maxUses = 4096

// useOf returns what is known of a configuration, and counts a call of it.
func (n *Node) useOf(srv *mcppool.Server) *use {
	h := hashOf(srv)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.byHash[h] {
		if u.srv.Equal(*srv) {
			u.refs++
			return u
		}
	}
	own := *srv // a caller may change its own afterwards
	own.Args, own.Env, own.Header = slices.Clone(srv.Args), maps.Clone(srv.Env), maps.Clone(srv.Header)
	u := &use{srv: own, key: n.names.server(srv), command: n.names.command(srv), refs: 1}
	u.srv.Policy = mcppool.Policy{Mode: srv.Policy.Mode}
	n.byHash[h] = append(n.byHash[h], u)
	n.uses[u.key] = u
	u.generation = max(n.gens[u.key], n.gens[u.command])
	return u
}

func (n *Node) doneWith(u *use) {
	n.mu.Lock()
	defer n.mu.Unlock()
	u.refs--
	u.last = time.Now()
}

// forgetUses forgets configurations when there are many: those that have had no call for
// a long time, and whose sessions are closed, so that no close can be missed.
func (n *Node) forgetUses() {
	n.mu.Lock()
	var old []mcppool.Server
	if len(n.uses) > maxUses {
		for key, u := range n.uses {
			if u.refs == 0 && time.Since(u.last) > time.Hour {
				old = append(old, u.srv)
				delete(n.uses, key)
			}
		}
		clear(n.byHash)
		for _, u := range n.uses {
			h := hashOf(&u.srv)
			n.byHash[h] = append(n.byHash[h], u)
		}
	}
	n.mu.Unlock()
	for _, srv := range old {
		n.pool.CloseServer(srv)
	}
}

// generation is what a caller captures once, when its call begins.
func (n *Node) generation(u *use) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return u.generation
}

// watchGenerations closes what other replicas closed.
func (n *Node) watchGenerations() {
	for n.life.Err() == nil {
		err := n.followGenerations(n.life, func() {
			n.mu.Lock()
			n.ready = true
			n.tellLocked()
			n.mu.Unlock()
		})
		if n.life.Err() != nil {
			return
		}
		n.log(slog.LevelWarn, n.name(), "watch of generations interrupted", slog.String("err", errText(err)))
		_ = n.pause(n.life, n.opts.TTL/50)
	}
}

// readGenerations acts upon all that was closed until now.
func (n *Node) readGenerations(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.TTL)
	defer cancel()
	read := false
	err := n.followGenerations(ctx, func() {
		read = true
		cancel()
	})
	if read {
		return nil
	}
	return err
}

// followGenerations acts upon what is closed and acknowledges it. What is there already comes in
// any order, so that it is acknowledged together, right before synced is called.
func (n *Node) followGenerations(ctx context.Context, synced func()) error {
	isSynced, high := false, uint64(0)
	return n.dir.Watch(ctx, Generations, func(ev Event) {
		switch ev.Kind {
		case Deleted: // of a scope: all have closed it
			n.mu.Lock()
			delete(n.gens, ev.Record.Key)
			n.mu.Unlock()
			return
		case Synced:
			isSynced = true
		case Written:
			n.closeOlder(ev.Record)
			high = max(high, ev.Record.Revision)
		}
		if !isSynced {
			return
		}
		n.mu.Lock()
		news := high > n.acked
		n.acked = max(n.acked, high)
		n.mu.Unlock()
		if ev.Kind == Synced {
			synced()
		}
		if news {
			n.renewSoon() // which carries the acknowledgement
		}
	})
}

// renewSoon asks for a renewal at once.
func (n *Node) renewSoon() {
	select {
	case n.renewNow <- struct{}{}:
	default:
	}
}

// closeOlder closes what a record of the bucket Generations says, once however often it is told.
func (n *Node) closeOlder(rec Record) {
	kind := decode[generationRecord](rec.Value).Kind
	n.mu.Lock()
	if n.gens[rec.Key] >= rec.Revision {
		n.mu.Unlock()
		return
	}
	n.gens[rec.Key] = rec.Revision
	var hits []*use
	for _, u := range n.uses {
		switch {
		case kind == closeServer && rec.Key == u.key || kind == closeCommand && rec.Key == u.command:
			u.generation = rec.Revision
			hits = append(hits, u)
		case kind == retireServer && rec.Key == n.names.name("retire", u.key):
			hits = append(hits, u)
		}
	}
	scopes := n.scopesLocked(kind, rec.Key)
	n.tellLocked()
	n.mu.Unlock()
	for _, u := range hits {
		switch kind {
		case closeServer:
			n.pool.CloseServer(u.srv)
		case closeCommand:
			n.pool.CloseCommand(u.srv)
		case retireServer:
			n.pool.RetireServer(u.srv)
		}
	}
	for _, scope := range scopes {
		n.pool.CloseScope(scope)
	}
}

// scopesLocked is what a record closes that closes a scope. The caller must hold n.mu.
func (n *Node) scopesLocked(kind closeKind, key string) (scopes []string) {
	if kind != closeScope {
		return nil
	}
	for _, h := range n.holdings {
		if h.scope != "" && h.name == key {
			h.sticky = false
			scopes = append(scopes, h.scope)
		}
		if scope, ok := h.scopes[key]; ok {
			delete(h.scopes, key)
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// closeEverywhere makes a generation, and waits until every replica that lives has closed what
// is older. One that is silent is fenced within the TTL, and counts as done then.
func (n *Node) closeEverywhere(ctx context.Context, key string, kind closeKind) error {
	value := encode(generationRecord{protocolVersion, kind})
	rev, err := n.put(ctx, key, value)
	if err != nil {
		return err
	}
	n.closeOlder(Record{Key: key, Value: value, Revision: rev})
	if err := n.readLeases(ctx); err != nil {
		return err
	}
	err = n.await(ctx, func() bool {
		for _, m := range n.members {
			if !m.record.State.over() && m.record.Ack < rev && m.incarnation != n.lease.incarnation {
				return false
			}
		}
		return true
	})
	if err == nil && kind == closeScope {
		n.forgetScope(ctx, key, rev)
	}
	return err
}

// forgetScope removes what the directory has of a scope that was closed, since there is no
// configuration that could be out of date. A replica that was fenced before it could
// close the scope must not take it up again, so that its record goes; it may have sessions of
// the scope at exclusive servers, so that the generation stays for it to read.
func (n *Node) forgetScope(ctx context.Context, key string, rev uint64) {
	ctx, cancel := n.op(ctx)
	defer cancel()
	n.mu.Lock()
	clean := true
	for _, m := range n.members {
		clean = clean && (m.record.State == leaseReleased || m.record.Ack >= rev || m.incarnation == n.lease.incarnation)
	}
	n.mu.Unlock()
	if rec, err := n.dir.Get(ctx, Owners, key); err == nil {
		if dead, err := n.isDead(ctx, decode[ownerRecord](rec.Value).Incarnation); err == nil && dead {
			_ = n.dir.Delete(ctx, Owners, key, rec.Revision) // else a new owner has it already
		}
	}
	if clean {
		_ = n.dir.Delete(ctx, Generations, key, rev)
	}
}

// put writes until it is known to be written: twice is as good as once.
func (n *Node) put(ctx context.Context, key string, value []byte) (uint64, error) {
	for {
		opCtx, cancel := n.op(ctx)
		rev, err := n.dir.Put(opCtx, Generations, key, value)
		cancel()
		if err == nil || ctx.Err() != nil {
			return rev, err
		}
		if pause := n.pause(ctx, n.opts.TTL/50); pause != nil {
			return 0, errors.Join(pause, err)
		}
	}
}

// readLeases makes sure that every replica is known that was known to the directory when it was called.
func (n *Node) readLeases(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := false
	err := n.dir.Watch(ctx, Leases, func(ev Event) {
		switch ev.Kind {
		case Synced:
			read = true
			cancel()
		case Written:
			n.mu.Lock()
			if m := n.members[ev.Record.Key]; m == nil || m.revision < ev.Record.Revision {
				n.learnLocked(ev.Record)
			}
			n.tellLocked()
			n.mu.Unlock()
		}
	})
	if read {
		return nil
	}
	return err
}

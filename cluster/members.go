package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// member is a replica as this one sees it. Its node's mu protects it.
type member struct {
	incarnation string
	record      leaseRecord
	revision    uint64
	seen        time.Time // when this revision was first seen, by this replica's clock
}

// Member describes a replica.
type Member struct {
	Incarnation string
	Name        string
	Addr        string
	State       string // "live", "drain", "released", "fenced"
	Self        bool
	Host        bool          // it runs sessions
	Scopes      int           // that it owns, as it said with its last renewal
	Used, Limit int           // see [Options.Capacity]
	Silent      time.Duration // since its last renewal was seen
	Version     int           // of the protocol that it speaks
}

// Members returns the replicas whose leases are known, ended ones included for a
// while, by name.
func (n *Node) Members() []Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Member
	for _, m := range n.members {
		r := &m.record
		all = append(all, Member{
			Incarnation: m.incarnation, Name: cmp.Or(r.Name, m.incarnation), Addr: r.Addr, State: string(r.State),
			Self: m.incarnation == n.lease.incarnation, Host: r.Host, Scopes: r.Scopes, Used: r.Used, Limit: r.Limit,
			Silent: time.Since(m.seen), Version: r.Version,
		})
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return all
}

// watchLeases keeps the members as the directory has them.
func (n *Node) watchLeases() {
	for n.life.Err() == nil {
		told := map[string]bool{}
		synced := false
		err := n.dir.Watch(n.life, Leases, func(ev Event) {
			n.mu.Lock()
			defer n.mu.Unlock()
			switch ev.Kind {
			case Synced:
				synced = true
				for inc := range n.members {
					if !told[inc] {
						delete(n.members, inc) // garbage that somebody deleted
					}
				}
			case Deleted:
				delete(n.members, ev.Record.Key)
			case Written:
				told[ev.Record.Key] = !synced
				n.learnLocked(ev.Record)
			}
			n.tellLocked()
		})
		if n.life.Err() != nil {
			return
		}
		n.log(slog.LevelWarn, n.name(), "watch of leases interrupted", slog.String("err", errText(err)))
		n.mu.Lock()
		n.graceEnd = time.Now().Add(n.opts.TTL)
		n.mu.Unlock()
		_ = n.pause(n.life, n.opts.TTL/50)
	}
}

func errText(err error) string {
	if err == nil {
		return "it ended"
	}
	return err.Error()
}

// learnLocked notes a lease's record. The caller must hold n.mu.
func (n *Node) learnLocked(rec Record) *member {
	m := n.members[rec.Key]
	if m == nil {
		m = &member{incarnation: rec.Key}
		n.members[rec.Key] = m
	}
	if m.revision != rec.Revision {
		m.record, m.revision, m.seen = decode[leaseRecord](rec.Value), rec.Revision, time.Now()
	}
	if m.record.State.over() {
		delete(n.windows, rec.Key)
	}
	if m.record.State == leaseFenced {
		for a := range n.aways[rec.Key] {
			// It may be stopped, and never answer. One that lives refuses in that time, which
			// is better than an outcome that nobody knows; one that is released answers.
			time.AfterFunc(n.opts.TTL/10, a.cancel)
		}
	}
	return m
}

// isDead reports whether a lease is over for good. What isn't known here is asked of the
// directory, and what the directory has no record of is made known to be over: only a
// write says that for certain.
func (n *Node) isDead(ctx context.Context, inc string) (bool, error) {
	n.mu.Lock()
	m := n.members[inc]
	over := m != nil && m.record.State.over()
	n.mu.Unlock()
	if m != nil {
		return over, nil
	}
	rec, err := n.dir.Get(ctx, Leases, inc)
	if errors.Is(err, ErrNotFound) {
		_, err = n.dir.Create(ctx, Leases, inc, encode(leaseRecord{Version: protocolVersion, State: leaseFenced}))
		if err == nil {
			return true, nil
		}
		if errors.Is(err, ErrExists) {
			return false, nil // it is there after all; the next look sees what it is
		}
	}
	if err != nil {
		return false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.learnLocked(rec).record.State.over(), nil
}

// garbageAge is how long the record of a lease that is over is kept at least.
const garbageAge = time.Hour

// fenceSilent fences the replicas that have been silent for the TTL. The write succeeds only if no
// renewal slipped in; a replica that has no lease itself fences nobody.
func (n *Node) fenceSilent() {
	n.mu.Lock()
	var silent, garbage []member
	now := time.Now()
	able := n.usableLocked() == nil && now.After(n.graceEnd) && n.ready
	for _, m := range n.members {
		switch age := now.Sub(m.seen); {
		case !able || m.incarnation == n.lease.incarnation:
		case !m.record.State.over() && age > n.opts.TTL:
			silent = append(silent, *m)
		case m.record.State.over() && age > max(garbageAge, 20*n.opts.TTL):
			garbage = append(garbage, *m)
		}
	}
	n.mu.Unlock()
	for _, m := range silent {
		n.fence(m)
	}
	for _, m := range garbage {
		ctx, cancel := n.op(n.life)
		_ = n.dir.Delete(ctx, Leases, m.incarnation, m.revision) // or the next time
		cancel()
	}
}

func (n *Node) fence(m member) {
	ctx, cancel := n.op(n.life)
	defer cancel()
	m.record.State = leaseFenced
	value := encode(m.record)
	rev, err := n.dir.Update(ctx, Leases, m.incarnation, value, m.revision)
	if err != nil {
		return // the watch tells what is so
	}
	n.count(&n.counts.Fenced)
	n.log(slog.LevelWarn, n.name(), "a replica was silent for the TTL, and is fenced", slog.String("silent", m.record.Name))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.learnLocked(Record{Key: m.incarnation, Value: value, Revision: rev})
	n.tellLocked()
}

// mayHostLocked reports whether this replica may claim another unit. The caller must hold n.mu.
func (n *Node) mayHostLocked() bool {
	return !n.opts.RoutesOnly && n.lease.state == leaseLive && !n.closed
}

// hostsLocked are the other replicas that may take another unit, the least loaded first. The
// caller must hold n.mu.
func (n *Node) hostsLocked() []*member {
	var hosts []*member
	for _, m := range n.members {
		r := &m.record
		if m.incarnation != n.lease.incarnation && r.Host && r.State == leaseLive && r.Version >= minVersion &&
			(r.Limit <= 0 || r.Used < r.Limit) && time.Since(m.seen) < n.opts.TTL {
			hosts = append(hosts, m)
		}
	}
	rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	slices.SortStableFunc(hosts, func(a, b *member) int { return cmp.Compare(a.record.load(), b.record.load()) })
	return hosts
}

// load is how full a replica is.
func (r *leaseRecord) load() float64 {
	if r.Limit > 0 {
		return float64(r.Used) / float64(r.Limit)
	}
	return float64(r.Used) / 1e6
}

// place chooses who is to claim a new unit: this replica, whose incarnation is empty, or another.
func (n *Node) place() (inc string, here bool) {
	full := false
	if n.opts.Capacity != nil {
		used, limit := n.opts.Capacity()
		full = limit > 0 && used >= limit
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mayHostLocked() && !full {
		return "", true
	}
	if hosts := n.hostsLocked(); len(hosts) > 0 {
		hosts[0].record.Used++ // until its next renewal says better
		return hosts[0].incarnation, false
	}
	return "", false
}

package memdir

import (
	"bytes"
	"context"
	"errors"

	"github.com/mcppool/mcppool/cluster"
)

// watch is one watch of a bucket.
type watch struct {
	store  *Store
	bucket cluster.Bucket
	era    int
	seen   uint64 // the revision of the last write that it was told
	synced bool
}

func (d *directory) Watch(ctx context.Context, b cluster.Bucket, f func(cluster.Event)) error {
	s := d.store
	w := watch{store: s, bucket: b}
	err := d.do(ctx, b, "watch", func(map[string]cluster.Record) error {
		d.wg.Add(1)
		w.era = s.era
		return nil
	})
	if err != nil {
		return err
	}
	defer d.wg.Done()
	for {
		events, changed, err := w.next()
		if err != nil {
			return err
		}
		for _, ev := range events {
			if err := d.over(ctx); err != nil {
				return err
			}
			f(ev)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-d.life.Done():
		}
		if err := d.over(ctx); err != nil {
			return err
		}
	}
}

// over reports why a watch has ended.
func (d *directory) over(ctx context.Context) error {
	return errors.Join(ctx.Err(), context.Cause(d.life))
}

// next returns what the watch wasn't told yet, and what is closed when there is more.
func (w *watch) next() (events []cluster.Event, changed chan struct{}, err error) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log[w.bucket]
	if w.era != s.era || w.synced && w.seen < s.forgotten[w.bucket] {
		return nil, nil, ErrInterrupted
	}
	first := len(log)
	for first > 0 && log[first-1].revision > w.seen {
		first--
	}
	for _, e := range log[first:] {
		ev := e.event
		if !w.synced && s.buckets[w.bucket][ev.Record.Key].Revision != e.revision {
			continue // not what is there now
		}
		ev.Record.Value = bytes.Clone(ev.Record.Value)
		events = append(events, ev)
	}
	w.seen = s.revision
	if !w.synced {
		w.synced = true
		events = append(events, cluster.Event{Kind: cluster.Synced})
	}
	return events, s.changed, nil
}

// Package memdir keeps a [cluster.Directory] in memory: for tests, and for several nodes
// of one process.
package memdir

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcppool/mcppool/cluster"
)

// ErrInterrupted is why a watch ended: the store was wiped, or the watch fell too far behind.
var ErrInterrupted = errors.New("memdir: the watch was interrupted")

// ErrClosed is of a directory that was closed.
var ErrClosed = errors.New("memdir: directory is closed")

// Store holds the records. It is made by [New] and safe for concurrent use.
type Store struct {
	mu       sync.Mutex // protects the fields below
	born     time.Time
	revision uint64
	buckets  map[cluster.Bucket]map[string]cluster.Record
	// changed is closed, and made anew, by each write.
	changed chan struct{}
	// log is what was written since the store was made, without what was overwritten.
	log map[cluster.Bucket][]entry
	// forgotten is the last write of a bucket of which the log may not tell: a watch that
	// hasn't got that far is interrupted.
	forgotten map[cluster.Bucket]uint64
	era       int // counts Wipe
}

// entry is a write; a deletion has no record.
type entry struct {
	revision uint64
	event    cluster.Event
}

// New returns an empty store.
func New() *Store {
	s := &Store{changed: make(chan struct{})}
	s.clearLocked()
	return s
}

// Wipe makes the store anew: without its records, with revisions that begin again.
func (s *Store) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.era++
	s.clearLocked()
	s.tellLocked()
}

// clearLocked empties the store. The caller must hold s.mu.
func (s *Store) clearLocked() {
	s.born, s.revision = time.Now(), 0
	s.buckets, s.log = map[cluster.Bucket]map[string]cluster.Record{}, map[cluster.Bucket][]entry{}
	s.forgotten = map[cluster.Bucket]uint64{}
	for _, b := range cluster.Buckets {
		s.buckets[b] = map[string]cluster.Record{}
	}
}

// tellLocked wakes the watches. The caller must hold s.mu.
func (s *Store) tellLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Open returns a connection to the store.
func (s *Store) Open() cluster.Directory {
	d := &directory{store: s}
	d.life, d.end = context.WithCancelCause(context.Background())
	return d
}

// directory is a connection to a store.
type directory struct {
	store *Store
	life  context.Context
	end   context.CancelCauseFunc
	wg    sync.WaitGroup // watches; added to under store.mu, and only while life lasts
}

// do runs one operation under the lock.
func (d *directory) do(ctx context.Context, b cluster.Bucket, key string, f func(records map[string]cluster.Record) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.life.Err() != nil {
		return ErrClosed
	}
	records, ok := s.buckets[b]
	if !ok || !validKey(key) {
		return errors.New("memdir: no such bucket, or not a key")
	}
	return f(records)
}

func validKey(key string) bool {
	return key != "" && len(key) <= 128 && !strings.ContainsFunc(key, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func (d *directory) Get(ctx context.Context, b cluster.Bucket, key string) (rec cluster.Record, err error) {
	err = d.do(ctx, b, key, func(records map[string]cluster.Record) error {
		var ok bool
		if rec, ok = records[key]; !ok {
			return cluster.ErrNotFound
		}
		rec.Value = bytes.Clone(rec.Value)
		return nil
	})
	return rec, err
}

// write writes one record unless check refuses what is there.
func (d *directory) write(ctx context.Context, b cluster.Bucket, key string, value []byte,
	check func(old cluster.Record) error,
) (revision uint64, err error) {
	err = d.do(ctx, b, key, func(records map[string]cluster.Record) error {
		if err := check(records[key]); err != nil {
			return err
		}
		rec := cluster.Record{Key: key, Value: bytes.Clone(value)}
		revision = d.store.putLocked(b, cluster.Event{Kind: cluster.Written, Record: rec})
		return nil
	})
	return revision, err
}

// putLocked does a write. The caller must hold s.mu.
func (s *Store) putLocked(b cluster.Bucket, ev cluster.Event) uint64 {
	s.revision++
	key := ev.Record.Key
	if ev.Kind == cluster.Deleted {
		delete(s.buckets[b], key)
	} else {
		ev.Record.Revision = s.revision
		s.buckets[b][key] = ev.Record
	}
	log := append(s.log[b], entry{s.revision, ev})
	if len(log) > 2*len(s.buckets[b])+1024 {
		log = s.compactedLocked(b, log)
	}
	s.log[b] = log
	s.tellLocked()
	return s.revision
}

// compactedLocked is log without what was overwritten, but for the last 512 writes, which
// stay for watches that are behind. The caller must hold s.mu.
func (s *Store) compactedLocked(b cluster.Bucket, log []entry) []entry {
	late := log[len(log)-512].revision
	s.forgotten[b] = late - 1
	return slices.DeleteFunc(log, func(e entry) bool {
		return e.revision < late && s.buckets[b][e.event.Record.Key].Revision != e.revision
	})
}

func (d *directory) Create(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	return d.write(ctx, b, key, value, func(old cluster.Record) error {
		if old.Revision != 0 {
			return cluster.ErrExists
		}
		return nil
	})
}

func (d *directory) Update(ctx context.Context, b cluster.Bucket, key string, value []byte, revision uint64) (uint64, error) {
	return d.write(ctx, b, key, value, unchanged(revision))
}

func unchanged(revision uint64) func(cluster.Record) error {
	return func(old cluster.Record) error {
		if old.Revision == 0 || old.Revision != revision {
			return cluster.ErrConflict
		}
		return nil
	}
}

func (d *directory) Put(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	return d.write(ctx, b, key, value, func(cluster.Record) error { return nil })
}

func (d *directory) Delete(ctx context.Context, b cluster.Bucket, key string, revision uint64) error {
	return d.do(ctx, b, key, func(records map[string]cluster.Record) error {
		if err := unchanged(revision)(records[key]); err != nil {
			return err
		}
		d.store.putLocked(b, cluster.Event{Kind: cluster.Deleted, Record: cluster.Record{Key: key}})
		return nil
	})
}

func (d *directory) Age(ctx context.Context) (age time.Duration, err error) {
	err = d.do(ctx, cluster.Leases, "age", func(map[string]cluster.Record) error {
		age = time.Since(d.store.born)
		return nil
	})
	return age, err
}

func (d *directory) Close() error {
	d.store.mu.Lock()
	d.end(ErrClosed)
	d.store.mu.Unlock()
	d.wg.Wait()
	return nil
}

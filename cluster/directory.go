package cluster

import (
	"context"
	"errors"
	"time"
)

// Directory is the little that a cluster needs of a store that all its replicas share:
// three buckets of records that are written by compare-and-swap and can be watched. The
// module natsdir has one over NATS JetStream, memdir
// has one for tests, and directorytest finds out whether another one can be trusted.
//
// Keys are 1 to 128 letters, digits, '-' and '_', and tell case apart; values are up to
// 16 KiB of any bytes. A Directory is safe for concurrent use.
//
// Reads and writes of one key are linearizable: what Create, Update and Delete decide, they decide
// against the latest value. Get may be answered with a value that was the latest a moment
// ago: a node decides nothing by a Get alone.
//
// Each method returns soon after its ctx ends. An implementation bounds each attempt by
// itself too, so that a lost answer costs a second and not the caller's whole time; it
// repeats reads, and no write whose outcome it doesn't know.
//
// A write that fails with ErrNotFound, ErrExists or ErrConflict has certainly
// changed nothing. After any other error its outcome is unknown: it may have been done, or
// be done yet. Errors hold no value of a record and no credential.
type Directory interface {
	// Get returns the record of a key, or ErrNotFound.
	Get(ctx context.Context, b Bucket, key string) (Record, error)
	// Create writes a key that has no record, and returns the record's revision. It fails
	// with ErrExists when it has one.
	Create(ctx context.Context, b Bucket, key string, value []byte) (revision uint64, err error)
	// Update replaces the record of a key if it still has this revision, and returns the
	// new one. It fails with ErrConflict when it has another or there is no record.
	Update(ctx context.Context, b Bucket, key string, value []byte, revision uint64) (uint64, error)
	// Put writes a key whatever its record is, and returns the new revision.
	Put(ctx context.Context, b Bucket, key string, value []byte) (uint64, error)
	// Delete removes the record of a key if it still has this revision. It fails with
	// ErrConflict when it has another or there is no record.
	Delete(ctx context.Context, b Bucket, key string, revision uint64) error
	// Watch calls f, from one goroutine, with what is in the bucket, then once with an event of
	// kind Synced, then with what changes from there on. It returns why it ended: ctx's error, or
	// an error once the connection to the store was interrupted in a way that may have
	// lost events; then the watch is to be begun again. A watch need not tell each value that a
	// key had, but always tells the last one, and those of a key in order. A key that is
	// deleted before the watch began need not be told. f isn't called once Watch has returned.
	Watch(ctx context.Context, b Bucket, f func(Event)) error
	// Age returns for how long the store has existed: since it was made, or last made
	// anew without its records.
	Age(ctx context.Context) (time.Duration, error)
	// Close ends the watches and lets go of the connection. The store stays as it is.
	Close() error
}

// Bucket is one of the name spaces of a [Directory].
type Bucket string

// The buckets. Revisions of records only ever grow within a bucket, over all its keys,
// and are never used again, not after a Delete either; they aren't zero, and fit in 63 bits.
const (
	Leases      Bucket = "lease" // one record for each replica: it lives
	Owners      Bucket = "owner" // one for each scope: who runs it
	Generations Bucket = "gen"   // one for each server that was closed: its revision counts the closes
)

// Buckets are all buckets.
var Buckets = [...]Bucket{Leases, Owners, Generations}

// Record is one record of a [Directory].
type Record struct {
	Key      string
	Value    []byte // its reader's
	Revision uint64
}

// Event is what [Directory.Watch] tells.
type Event struct {
	Kind EventKind
	// Record is what was written; of a Deleted record only Key is set, and of a Synced event none.
	Record Record
}

// EventKind says what an [Event] is.
type EventKind uint8

// The kinds of events.
const (
	Written EventKind = iota
	Deleted
	Synced // all that was in the bucket when the watch began has been told
)

// What a [Directory] answers besides success. A write that got one of these changed
// nothing.
var (
	ErrNotFound = errors.New("cluster: no such record")
	ErrExists   = errors.New("cluster: the record exists already")
	ErrConflict = errors.New("cluster: the record was changed or removed meanwhile")
)

// Package directorytest finds out whether a [cluster.Directory] is one that a cluster can
// rely on.
package directorytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcppool/mcppool/cluster"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// Run runs the contract's tests. For each, fresh returns what opens connections to a
// store that is empty; the test closes those that it opens.
func Run(t *testing.T, fresh func(t *testing.T) (open func() cluster.Directory)) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"GetOfNothingIsErrNotFound", (*suite).getNothing},
		{"CreateWritesOnlyWhatIsNotThere", (*suite).create},
		{"UpdateNeedsTheLatestRevision", (*suite).update},
		{"DeleteNeedsTheLatestRevision", (*suite).remove},
		{"RevisionsGrowAndAreNeverUsedAgain", (*suite).revisions},
		{"BucketsAreApart", (*suite).buckets},
		{"KeysAndValuesArriveAsTheyAre", (*suite).values},
		{"AnotherConnectionSeesWhatWasWritten", (*suite).connections},
		{"OfManyCreatesOneSucceeds", (*suite).raceCreate},
		{"OfManyUpdatesOneSucceedsAtATime", (*suite).raceUpdate},
		{"WatchTellsWhatIsThereThenSyncedThenChanges", (*suite).watch},
		{"WatchOfAnEmptyBucketIsSyncedAtOnce", (*suite).watchEmpty},
		{"WatchMissesNothingAmongWriters", (*suite).watchRace},
		{"WatchEndsWithItsCtxAndWithClose", (*suite).watchEnds},
		{"AgeGrows", (*suite).age},
		{"NothingIsDoneOnceCtxHasEnded", (*suite).ended},
		{"ClosedDirectoryRefuses", (*suite).closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			test.run(&suite{T: t, ctx: ctx, connect: fresh(t)})
		})
	}
}

// suite is one test.
type suite struct {
	*testing.T
	ctx     context.Context
	connect func() cluster.Directory
}

func (s *suite) open() cluster.Directory {
	d := s.connect()
	s.Cleanup(func() {
		if err := d.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return d
}

// want fails the test unless err is target.
func (s *suite) want(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("error is %v, want %v", err, target)
	}
}

// ok returns a revision, and fails the test if there is an error.
func (s *suite) ok(revision uint64, err error) uint64 {
	s.Helper()
	if err != nil || revision == 0 || revision > 1<<63-1 {
		s.Fatalf("revision is %d (%v)", revision, err)
	}
	return revision
}

// has fails the test unless a key has this value and revision.
func (s *suite) has(d cluster.Directory, b cluster.Bucket, key, value string, revision uint64) {
	s.Helper()
	rec, err := d.Get(s.ctx, b, key)
	if err != nil || rec.Key != key || string(rec.Value) != value || rec.Revision != revision {
		s.Fatalf("record is %q %q at %d (%v), want %q %q at %d", rec.Key, rec.Value, rec.Revision, err, key, value, revision)
	}
}

func (s *suite) getNothing() {
	_, err := s.open().Get(s.ctx, cluster.Leases, "nobody")
	s.want(err, cluster.ErrNotFound)
}

func (s *suite) create() {
	d := s.open()
	first := s.ok(d.Create(s.ctx, cluster.Owners, "k", []byte("a")))
	s.has(d, cluster.Owners, "k", "a", first)
	_, err := d.Create(s.ctx, cluster.Owners, "k", []byte("b"))
	s.want(err, cluster.ErrExists)
	s.has(d, cluster.Owners, "k", "a", first)
	s.noError(d.Delete(s.ctx, cluster.Owners, "k", first))
	second := s.ok(d.Create(s.ctx, cluster.Owners, "k", []byte("c")))
	s.has(d, cluster.Owners, "k", "c", second)
}

func (s *suite) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("error: %v", err)
	}
}

func (s *suite) update() {
	d := s.open()
	_, err := d.Update(s.ctx, cluster.Owners, "k", []byte("a"), 1)
	s.want(err, cluster.ErrConflict)
	first := s.ok(d.Create(s.ctx, cluster.Owners, "k", []byte("a")))
	second := s.ok(d.Update(s.ctx, cluster.Owners, "k", []byte("b"), first))
	s.has(d, cluster.Owners, "k", "b", second)
	for _, old := range []uint64{first, second + 1, 0} {
		_, err = d.Update(s.ctx, cluster.Owners, "k", []byte("c"), old)
		s.want(err, cluster.ErrConflict)
	}
	s.has(d, cluster.Owners, "k", "b", second)
	s.noError(d.Delete(s.ctx, cluster.Owners, "k", second))
	_, err = d.Update(s.ctx, cluster.Owners, "k", []byte("d"), second)
	s.want(err, cluster.ErrConflict)
	_, err = d.Get(s.ctx, cluster.Owners, "k")
	s.want(err, cluster.ErrNotFound)
	third := s.ok(d.Create(s.ctx, cluster.Owners, "k", []byte("e")))
	_, err = d.Update(s.ctx, cluster.Owners, "k", []byte("f"), second)
	s.want(err, cluster.ErrConflict)
	s.has(d, cluster.Owners, "k", "e", third)
}

func (s *suite) remove() {
	d := s.open()
	s.want(d.Delete(s.ctx, cluster.Owners, "k", 1), cluster.ErrConflict)
	first := s.ok(d.Put(s.ctx, cluster.Owners, "k", []byte("a")))
	second := s.ok(d.Put(s.ctx, cluster.Owners, "k", []byte("b")))
	s.want(d.Delete(s.ctx, cluster.Owners, "k", first), cluster.ErrConflict)
	s.has(d, cluster.Owners, "k", "b", second)
	s.noError(d.Delete(s.ctx, cluster.Owners, "k", second))
	_, err := d.Get(s.ctx, cluster.Owners, "k")
	s.want(err, cluster.ErrNotFound)
	s.want(d.Delete(s.ctx, cluster.Owners, "k", second), cluster.ErrConflict)
}

func (s *suite) revisions() {
	d, other := s.open(), s.open()
	last := uint64(0)
	next := func(rev uint64, err error) uint64 {
		s.Helper()
		if s.ok(rev, err) <= last {
			s.Fatalf("revision %d after %d", rev, last)
		}
		last = rev
		return rev
	}
	for range 5 {
		rev := next(d.Create(s.ctx, cluster.Generations, "a", []byte("1")))
		next(other.Put(s.ctx, cluster.Generations, "b", nil))
		rev = next(other.Update(s.ctx, cluster.Generations, "a", []byte("2"), rev))
		s.noError(d.Delete(s.ctx, cluster.Generations, "a", rev))
	}
}

func (s *suite) buckets() {
	d := s.open()
	for i, b := range cluster.Buckets {
		s.ok(d.Create(s.ctx, b, "k", fmt.Append(nil, i)))
	}
	for i, b := range cluster.Buckets {
		rec, err := d.Get(s.ctx, b, "k")
		if err != nil || string(rec.Value) != fmt.Sprint(i) {
			s.Fatalf("bucket %s holds %q (%v)", b, rec.Value, err)
		}
	}
}

func (s *suite) values() {
	d := s.open()
	every := make([]byte, 16<<10)
	for i := range every {
		every[i] = byte(i)
	}
	long := string(bytes.Repeat([]byte("k"), 128))
	for _, key := range []string{"A", "a", "0", "-_-", "Zz_09", long} {
		rev := s.ok(d.Put(s.ctx, cluster.Owners, key, append([]byte(key), every[len(key):]...)))
		s.has(d, cluster.Owners, key, key+string(every[len(key):]), rev)
	}
	rev := s.ok(d.Put(s.ctx, cluster.Owners, "empty", nil))
	s.has(d, cluster.Owners, "empty", "", rev)
	value := []byte("mine")
	rev = s.ok(d.Put(s.ctx, cluster.Owners, "own", value))
	value[0] = 'x' // the directory doesn't hold on to it
	s.has(d, cluster.Owners, "own", "mine", rev)
}

func (s *suite) connections() {
	a, b := s.open(), s.open()
	rev := s.ok(a.Create(s.ctx, cluster.Owners, "k", []byte("a")))
	s.eventually("the other connection reads what was written", func() bool {
		rec, err := b.Get(s.ctx, cluster.Owners, "k")
		return err == nil && rec.Revision == rev
	})
	_, err := b.Create(s.ctx, cluster.Owners, "k", nil)
	s.want(err, cluster.ErrExists)
	s.ok(b.Update(s.ctx, cluster.Owners, "k", []byte("b"), rev))
	_, err = a.Update(s.ctx, cluster.Owners, "k", []byte("c"), rev)
	s.want(err, cluster.ErrConflict)
}

// eventually waits until what is true.
func (s *suite) eventually(what string, is func() bool) {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			s.Fatalf("never: %s", what)
		}
	}
}

func (s *suite) raceCreate() {
	const writers, keys = 4, 25
	var won [keys]atomic.Int32
	s.together(writers, func(d cluster.Directory, me int) {
		for k := range keys {
			switch _, err := d.Create(s.ctx, cluster.Owners, fmt.Sprint(k), fmt.Append(nil, me)); {
			case err == nil:
				won[k].Add(1)
			case !errors.Is(err, cluster.ErrExists):
				s.Errorf("Create: %v", err)
			}
		}
	})
	for k := range won {
		if n := won[k].Load(); n != 1 {
			s.Errorf("key %d was created %d times", k, n)
		}
	}
}

// together runs f in goroutines with a connection each, and waits.
func (s *suite) together(n int, f func(d cluster.Directory, me int)) {
	var wg sync.WaitGroup
	for me := range n {
		d := s.open()
		wg.Go(func() { f(d, me) })
	}
	wg.Wait()
}

func (s *suite) raceUpdate() {
	const writers, each = 4, 20
	d := s.open()
	s.ok(d.Create(s.ctx, cluster.Owners, "n", []byte("0")))
	s.together(writers, func(d cluster.Directory, _ int) {
		for done := 0; done < each && s.ctx.Err() == nil; {
			rec, err := d.Get(s.ctx, cluster.Owners, "n")
			if err != nil {
				s.Errorf("Get: %v", err)
				return
			}
			var n int
			_, _ = fmt.Sscan(string(rec.Value), &n)
			switch _, err = d.Update(s.ctx, cluster.Owners, "n", fmt.Append(nil, n+1), rec.Revision); {
			case err == nil:
				done++
			case !errors.Is(err, cluster.ErrConflict):
				s.Errorf("Update: %v", err)
				return
			}
		}
	})
	s.eventually("every increment counts", func() bool {
		rec, err := d.Get(s.ctx, cluster.Owners, "n")
		return err == nil && string(rec.Value) == fmt.Sprint(writers*each)
	})
}

func (s *suite) age() {
	d := s.open()
	first, err := d.Age(s.ctx)
	s.noError(err)
	if first < 0 || first > time.Hour {
		s.Fatalf("age of a fresh store is %s", first)
	}
	s.eventually("age grows", func() bool {
		later, err := d.Age(s.ctx)
		return err == nil && later > first
	})
	other, err := s.open().Age(s.ctx)
	s.noError(err)
	if other < first {
		s.Fatalf("age is %s for another connection, after %s", other, first)
	}
}

func (s *suite) ended() {
	d := s.open()
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := d.Create(ctx, cluster.Owners, "k", nil)
	s.want(err, context.Canceled)
	_, err = d.Get(ctx, cluster.Owners, "k")
	s.want(err, context.Canceled)
	s.want(d.Watch(ctx, cluster.Owners, func(cluster.Event) {}), context.Canceled)
}

func (s *suite) closed() {
	d := s.connect()
	s.ok(d.Create(s.ctx, cluster.Owners, "k", nil))
	s.noError(d.Close())
	_, err := d.Get(s.ctx, cluster.Owners, "k")
	if err == nil || errors.Is(err, cluster.ErrNotFound) {
		s.Fatalf("Get of a closed directory: %v", err)
	}
	_, err = d.Update(s.ctx, cluster.Owners, "k", nil, 1)
	if err == nil || errors.Is(err, cluster.ErrConflict) {
		s.Fatalf("Update of a closed directory: %v", err)
	}
	if err := d.Watch(s.ctx, cluster.Owners, func(cluster.Event) {}); err == nil {
		s.Fatal("Watch of a closed directory ended without an error")
	}
	_, err = s.open().Get(s.ctx, cluster.Owners, "k")
	s.noError(err)
}

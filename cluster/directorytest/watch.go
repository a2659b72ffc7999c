package directorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcppool/mcppool/cluster"
)

// view is what a watch was told.
type view struct {
	done chan struct{} // closed when Watch has returned
	err  error         // of Watch, after done
	end  context.CancelFunc

	mu     sync.Mutex // protects the fields below
	values map[string]string
	last   map[string]uint64
	synced int
	order  []string
	wrong  string
}

// watching begins a watch, which the test's end ends.
func (s *suite) watching(d cluster.Directory, b cluster.Bucket) *view {
	ctx, cancel := context.WithCancel(s.ctx)
	v := &view{done: make(chan struct{}), end: cancel, values: map[string]string{}, last: map[string]uint64{}}
	go func() {
		defer close(v.done)
		v.err = d.Watch(ctx, b, v.told)
	}()
	s.Cleanup(func() {
		cancel()
		<-v.done
	})
	return v
}

func (v *view) told(ev cluster.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.done:
		v.wrong = "told after Watch had returned"
	default:
	}
	rec := ev.Record
	switch ev.Kind {
	case cluster.Synced:
		v.synced++
		v.order = append(v.order, "synced")
	case cluster.Deleted:
		delete(v.values, rec.Key)
		v.order = append(v.order, "-"+rec.Key)
	case cluster.Written:
		if rec.Revision <= v.last[rec.Key] {
			v.wrong = fmt.Sprintf("key %s told at %d after %d", rec.Key, rec.Revision, v.last[rec.Key])
		}
		v.last[rec.Key] = rec.Revision
		v.values[rec.Key] = string(rec.Value)
		v.order = append(v.order, rec.Key+string(rec.Value))
	}
}

// look runs f under the view's lock, once nothing was wrong.
func (s *suite) look(v *view, f func() bool) bool {
	s.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.wrong != "" {
		s.Fatal(v.wrong)
	}
	return f()
}

func (s *suite) watch() {
	d, other := s.open(), s.open()
	a := s.ok(d.Create(s.ctx, cluster.Leases, "a", []byte("1")))
	s.ok(d.Create(s.ctx, cluster.Leases, "b", []byte("1")))
	gone := s.ok(d.Create(s.ctx, cluster.Leases, "gone", []byte("1")))
	s.noError(d.Delete(s.ctx, cluster.Leases, "gone", gone))
	s.ok(d.Create(s.ctx, cluster.Owners, "elsewhere", []byte("1")))
	v := s.watching(other, cluster.Leases)
	s.eventually("synced", func() bool { return s.look(v, func() bool { return v.synced == 1 }) })
	s.look(v, func() bool {
		before := slices.DeleteFunc(slices.Clone(v.order), func(o string) bool { return o == "-gone" })
		slices.Sort(before[:len(before)-1])
		if !slices.Equal(before, []string{"a1", "b1", "synced"}) {
			s.Fatalf("told %v", v.order)
		}
		return true
	})
	a = s.ok(d.Update(s.ctx, cluster.Leases, "a", []byte("2"), a))
	s.eventually("an update is told", func() bool {
		return s.look(v, func() bool { return v.values["a"] == "2" && v.last["a"] == a })
	})
	s.noError(d.Delete(s.ctx, cluster.Leases, "a", a))
	s.ok(d.Put(s.ctx, cluster.Leases, "c", []byte("1")))
	s.eventually("a deletion and what was new are told", func() bool {
		return s.look(v, func() bool {
			_, there := v.values["a"]
			return !there && v.values["c"] == "1"
		})
	})
	again := s.ok(d.Create(s.ctx, cluster.Leases, "a", []byte("3")))
	s.eventually("a key that is back is told", func() bool {
		return s.look(v, func() bool {
			return v.values["a"] == "3" && v.last["a"] == again && v.synced == 1 && len(v.values) == 3
		})
	})
}

func (s *suite) watchEmpty() {
	v := s.watching(s.open(), cluster.Generations)
	s.eventually("synced", func() bool { return s.look(v, func() bool { return v.synced == 1 && len(v.order) == 1 }) })
}

func (s *suite) watchRace() {
	const writers, each = 3, 60
	d := s.open()
	var views []*view
	var mu sync.Mutex
	s.together(writers, func(w cluster.Directory, me int) {
		key := fmt.Sprint("k", me)
		for i := range each {
			if i%20 == 10 { // watches that begin amid writes
				v := s.watching(d, cluster.Owners)
				mu.Lock()
				views = append(views, v)
				mu.Unlock()
			}
			rev, err := w.Put(s.ctx, cluster.Owners, key, fmt.Append(nil, i))
			if err == nil && i%7 == 4 {
				err = w.Delete(s.ctx, cluster.Owners, key, rev)
			}
			if err != nil {
				s.Errorf("write: %v", err)
				return
			}
		}
	})
	for _, v := range views {
		s.eventually("each watch comes to what is there", func() bool {
			return s.look(v, func() bool {
				for me := range writers {
					if v.values[fmt.Sprint("k", me)] != fmt.Sprint(each-1) {
						return false
					}
				}
				return v.synced == 1
			})
		})
	}
}

func (s *suite) watchEnds() {
	d := s.connect()
	byCtx, byClose := s.watching(d, cluster.Owners), s.watching(d, cluster.Owners)
	for _, v := range []*view{byCtx, byClose} {
		s.eventually("synced", func() bool { return s.look(v, func() bool { return v.synced == 1 }) })
	}
	byCtx.end()
	<-byCtx.done
	if !errors.Is(byCtx.err, context.Canceled) {
		s.Fatalf("a watch whose ctx ended returned %v", byCtx.err)
	}
	s.noError(d.Close())
	<-byClose.done
	if byClose.err == nil {
		s.Fatal("a watch of a closed directory returned nil")
	}
}

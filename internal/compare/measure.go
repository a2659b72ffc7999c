package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one contender did in one round.
type sample struct {
	n      int           // calls, connects or closes
	wall   time.Duration // for all of them
	cpu    time.Duration // of this process alone, its garbage collector included
	bytes  uint64        // allocated
	allocs uint64
}

func (s sample) perCall() time.Duration { return s.wall / time.Duration(s.n) }

// result has a sample of each round.
type result struct{ samples []sample }

type measurer struct {
	opts    *options
	raw     io.Writer           // nil for none
	results map[string]*result  // by resultKey
	idles   map[string]idleCost // by contender
}

func resultKey(row, contender string) string { return row + "/" + contender }

// row measures all contenders of a row, in interleaved rounds: what disturbs
// the machine for a while disturbs them all.
func (m *measurer) row(ctx context.Context, r row) error {
	var runs []*running
	defer func() {
		for _, run := range runs {
			_ = run.close() // a failure to close was measured as such, or isn't what matters now
		}
	}()
	for _, name := range r.contenders {
		if !m.opts.contenders.MatchString(name) {
			continue
		}
		run, err := start(ctx, &r, name)
		if err != nil {
			return err
		}
		runs = append(runs, run)
		if err := run.calibrate(ctx, m.opts.batch); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.results[resultKey(r.name, name)] = &result{}
	}
	for round := range m.opts.rounds {
		for i := range runs {
			run := runs[(i+round)%len(runs)]
			s, err := run.batch(ctx, run.n)
			if err != nil {
				return fmt.Errorf("%s: %w", run.name, err)
			}
			res := m.results[resultKey(r.name, run.name)]
			res.samples = append(res.samples, s)
			m.writeRaw(&r, run.name, s)
		}
	}
	return nil
}

func (m *measurer) writeRaw(r *row, contender string, s sample) {
	if m.raw == nil {
		return
	}
	clean := func(s string) string { return strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(s) }
	fmt.Fprintf(m.raw, "Benchmark/row=%s/by=%s %d %d ns/op %d cpu-ns/op %d B/op %d allocs/op\n", clean(r.name), clean(contender),
		s.n, s.perCall().Nanoseconds(), s.cpu.Nanoseconds()/int64(s.n), s.bytes/uint64(s.n), s.allocs/uint64(s.n))
}

// running is a contender that is being measured.
type running struct {
	*row
	name    string
	args    any
	session session // nil when connects or closes are measured
	n       int     // of a batch
}

func start(ctx context.Context, r *row, name string) (*running, error) {
	run := &running{row: r, name: name, args: r.argsFor(name)}
	if r.part != calls {
		return run, nil
	}
	var err error
	if r.sessions > 1 {
		run.session, err = openMany(ctx, name, r.target, r.sessions)
	} else {
		run.session, err = open(ctx, name, r.target)
	}
	return run, err
}

func (run *running) close() error {
	if run.session == nil {
		return nil
	}
	return run.session.close()
}

// calibrate finds how many calls take about as long as a batch should, and
// warms the connection up.
func (run *running) calibrate(ctx context.Context, batch time.Duration) error {
	if run.part != calls {
		batch *= 3 // they are few and vary more
	}
	for n := 1; ; n = n*2 + run.callers {
		begun := time.Now()
		if _, err := run.batch(ctx, n); err != nil {
			return err
		}
		if took := time.Since(begun); took >= batch/3 {
			run.n = max(1, int(int64(n)*int64(batch)/int64(took)))
			return nil
		}
	}
}

func (run *running) batch(ctx context.Context, n int) (sample, error) {
	runtime.GC()
	if run.part != calls {
		return run.lives(ctx, n)
	}
	m := meter{}
	m.start()
	var err error
	if run.callers <= 1 {
		err = run.callN(ctx, n)
	} else {
		err = run.callAtOnce(ctx, n)
	}
	m.stop()
	m.total.n = n
	return m.total, err
}

func (run *running) call(ctx context.Context, s session) error {
	r, err := s.call(ctx, run.tool, run.args)
	if err == nil && !r.holds(run.size) {
		err = fmt.Errorf("the result is of %d, %d, %d bytes, not of %d", len(r.text), len(r.data), len(r.line), run.size)
	}
	return err
}

func (run *running) callN(ctx context.Context, n int) error {
	for range n {
		if err := run.call(ctx, run.session); err != nil {
			return err
		}
	}
	return nil
}

func (run *running) callAtOnce(ctx context.Context, n int) error {
	var (
		left    atomic.Int64
		wg      sync.WaitGroup
		failure atomic.Pointer[error]
	)
	left.Store(int64(n))
	for range run.callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := run.call(ctx, run.session); err != nil {
					failure.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// lives measures the beginnings or the ends of connections. Its time is the
// median life's, since a process that starts is at the scheduler's mercy.
func (run *running) lives(ctx context.Context, n int) (sample, error) {
	var begin, end meter
	walls := make([]time.Duration, n)
	for i := range walls {
		before := begin.total.wall
		begin.start()
		s, err := open(ctx, run.name, run.target)
		begin.stop()
		if err != nil {
			return sample{}, err
		}
		walls[i] = begin.total.wall - before
		callErr := run.call(ctx, s)
		before = end.total.wall
		end.start()
		err = s.close()
		end.stop()
		if callErr != nil {
			return sample{}, callErr
		}
		if err != nil {
			return sample{}, fmt.Errorf("close: %w", err)
		}
		if run.part == closes {
			walls[i] = end.total.wall - before
		}
	}
	total := begin.total
	if run.part == closes {
		total = end.total
	}
	slices.Sort(walls)
	total.n, total.wall = n, walls[n/2]*time.Duration(n)
	return total, nil
}

// meter sums up what this process spends between start and stop.
type meter struct {
	total  sample
	memory runtime.MemStats
	cpu    time.Duration
	begun  time.Time
}

func (m *meter) start() {
	runtime.ReadMemStats(&m.memory)
	m.cpu = cpuTime()
	m.begun = time.Now()
}

func (m *meter) stop() {
	m.total.wall += time.Since(m.begun)
	m.total.cpu += cpuTime() - m.cpu
	bytes, allocs := m.memory.TotalAlloc, m.memory.Mallocs
	runtime.ReadMemStats(&m.memory)
	m.total.bytes += m.memory.TotalAlloc - bytes
	m.total.allocs += m.memory.Mallocs - allocs
}

package pooldebug

import (
	"math/bits"
	"time"
)

const (
	slots   = 60 // of a window
	buckets = 22 // of a histogram
	// firstBucket: durations below 2^firstBucket ns, which is 65.5 µs, are in the
	// first bucket; each of the next is twice as wide, and the last has no end.
	firstBucket = 16
)

// latency is one of the durations that are measured.
type latency int

const (
	latencyQueue latency = iota // waiting at a limit, or for one's turn
	latencyConnect
	latencyCall
	latencies
)

var latencyNames = [latencies]string{"queue", "connect", "call"}

// count is one of the things that are counted.
type count int

const (
	countCalls count = iota
	countFailed
	countOpened
	countClosed
	counts
)

var countNames = [counts]string{"calls", "failed", "opened", "closed"}

// slot is what happened in one of the parts of a window.
type slot struct {
	number int64 // since 1970, so that an old one is known as such
	counts [counts]uint32
	hist   [latencies]histogram
}

type histogram struct {
	max     time.Duration
	buckets [buckets]uint32
}

// series is the last slots.
type series struct {
	width int64 // of a slot, in ns
	slots [slots]slot
}

// at is the slot of a moment, in ns since 1970.
func (s *series) at(now int64) *slot {
	n := now / s.width
	sl := &s.slots[n%slots]
	if sl.number != n {
		*sl = slot{number: n}
	}
	return sl
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bits.Len64(uint64(max(d, 0))>>firstBucket), buckets-1)]++
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.max = max(h.max, o.max)
}

// bound is the upper end of a bucket. The last one has none in truth.
func bound(bucket int) time.Duration { return 1 << (firstBucket + bucket) }

func (h *histogram) count() (n uint64) {
	for _, b := range h.buckets {
		n += uint64(b)
	}
	return n
}

// quantile estimates what a share q of the durations doesn't exceed: within the
// bucket that holds it the durations are taken for evenly spread.
func (h *histogram) quantile(q float64) time.Duration {
	rank := q * float64(h.count())
	for i, n := range h.buckets {
		if n == 0 || float64(n) < rank {
			rank -= float64(n)
			continue
		}
		low := time.Duration(0)
		if i > 0 {
			low = bound(i - 1)
		}
		high := bound(i)
		if i == buckets-1 || high > h.max {
			high = h.max
		}
		return low + time.Duration(rank/float64(n)*float64(high-low))
	}
	return h.max
}

// window returns the counts of each slot that ends with now's, the oldest first,
// and the histograms of all of them.
func (s *series) window(now int64) (c [counts][slots]uint32, h [latencies]histogram) {
	newest := now / s.width
	for i := range s.slots {
		sl := &s.slots[i]
		age := newest - sl.number
		if age < 0 || age >= slots {
			continue
		}
		for k := range c {
			c[k][slots-1-age] = sl.counts[k]
		}
		for k := range h {
			h[k].merge(&sl.hist[k])
		}
	}
	return c, h
}

package fairqueue

import "time"

// What a Pace expects at least and at most, however it went lately.
const (
	minPace = 100 * time.Millisecond
	maxPace = 30 * time.Second
)

// Pace is how fast a queue moves: a moving average. Its zero value is ready.
type Pace struct {
	last time.Duration
	gap  time.Duration
}

// Note tells that somebody's turn came now, which is a time of any clock that
// starts at zero, and later than that.
func (p *Pace) Note(now time.Duration) {
	if p.last != 0 {
		p.gap += (now - p.last - p.gap) / 4
	}
	p.last = now
}

// For is about how long it takes until n more have had their turn.
func (p *Pace) For(n int) time.Duration {
	return min(max(time.Duration(n)*p.gap, minPace), maxPace)
}

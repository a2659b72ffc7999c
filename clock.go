package mcppool

import "time"

// moment is a time by the pool's own clock: how long after its making. It is
// cheaper to read and to compare than a time.Time, and zero is before everything.
type moment = time.Duration

func (p *Pool) now() moment { return time.Since(p.born) }

// wall is m as others know it; the zero time for zero.
func (p *Pool) wall(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return p.born.Add(m).Round(0)
}

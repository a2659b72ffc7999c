package stdio

import "sync/atomic"

// Traffic counts the bytes of one connection or of many.
type Traffic struct {
	In  atomic.Int64 // read from stdout
	Out atomic.Int64 // written to stdin
}

// Stats counts what a Conn has done.
type Stats struct {
	Junk          int64 // lines of stdout that are no message
	Abandoned     int64 // calls given up by their ctx after they were sent
	Late          int64 // answers that came for none: after their call was given up, or to no call
	DroppedEvents int64 // notifications and log lines that no handler took in time
	Refused       int64 // requests of the server refused or left unanswered because it asks too much
	Panics        int64 // of handlers
}

type counters struct {
	junk, abandoned, late, refused, panics atomic.Int64
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	return Stats{
		Junk:          c.count.junk.Load(),
		Abandoned:     c.count.abandoned.Load(),
		Late:          c.count.late.Load(),
		DroppedEvents: c.events.drops(),
		Refused:       c.count.refused.Load(),
		Panics:        c.count.panics.Load(),
	}
}

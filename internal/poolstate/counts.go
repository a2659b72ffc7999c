package poolstate

import "maps"

// Counts are the numbers of a State at one moment.
type Counts struct {
	Open       int // sessions that aren't closed
	Kept       int // of them, those that calls can find
	Idle       int // of those, the ones that nobody borrows
	Borrowed   int // live sessions that somebody borrows
	Spares     int // connected ones
	Processes  int // started and not ended
	Waiting    int // callers that wait at a limit
	Queued     int // open sessions by status
	Connecting int
	Live       int
	Closing    int

	Connects uint64 // sessions begun
	Failures uint64 // of them, those that didn't come up
	Opened   uint64 // of them, those that did
	Evicted  uint64 // of them, those that made room

	of [Closed]int
}

// Counts returns the numbers.
func (st *State) Counts() Counts {
	c := st.counts
	c.Idle, c.Spares = st.idle.Len(), st.spares.Len()
	c.Processes, c.Waiting = st.tally.processes, st.waiting
	c.Queued, c.Connecting, c.Live, c.Closing = c.of[Queued], c.of[Connecting], c.of[Live], c.of[Closing]
	c.Borrowed = c.Live - c.Idle - c.Spares // those that nobody borrows are filed
	return c
}

// Open is how many sessions aren't closed.
func (st *State) Open() int { return st.counts.Open }

// Closes returns how many sessions have been closed, by reason.
func (st *State) Closes() map[Reason]uint64 { return maps.Clone(st.closes) }

// Remembered is how many things are held; zero when nothing is open.
func (st *State) Remembered() int {
	return len(st.sessions) + len(st.groups) + len(st.scopes) + st.idle.Classes() + st.idle.Len() + st.counts.Open +
		st.spares.Classes() + st.spares.Len() + st.warming.Len() + st.queue.Len() + st.waiting + st.counts.Kept +
		st.tally.processes + st.tally.ending + st.tally.queued + st.starts.Len() + len(st.orphans)
}

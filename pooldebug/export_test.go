package pooldebug

import "net/url"

// Remembered is how much a page remembers.
type Remembered struct{ Open, Closed, Connecting, Backoffs, Calls, Lines, Events int }

// Remembered counts what a page remembers.
func (p *Page) Remembered() Remembered {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tracks) != p.open+len(p.closed) {
		panic("bug: tracks are neither open nor closed")
	}
	return Remembered{
		Open: p.open, Closed: len(p.closed), Connecting: len(p.running), Backoffs: len(p.backoffs),
		Calls: len(p.calls.all), Lines: len(p.output.lines.all), Events: len(p.events.all),
	}
}

// SnapshotOf does what an update of an open page does, apart from writing it.
func (p *Page) SnapshotOf(query string) int {
	v, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	var seen view
	return len(seen.next(p.snapshot(parseQuery(v), 0)).Order)
}

package pooldebug

import "net/url"

// Remembered counts what a page remembers.
func (p *Page) Remembered() (open, closed, breakers, events int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tracks) != p.open+len(p.closed) {
		panic("bug: tracks are neither open nor closed")
	}
	return p.open, len(p.closed), len(p.breakers), len(p.calls.all) + len(p.events.all)
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

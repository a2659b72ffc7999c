package poolstate

import "github.com/mcppool/mcppool/internal/keyed"

// MaxEnds is for how many keys it is remembered why their last session ended.
const MaxEnds = 1024

// ends remembers why the last sessions of some keys ended, those that ended last. It
// holds digests alone, since a key may be of a conversation that is deleted.
type ends struct {
	why  map[Digest]Reason
	ring []Digest // the keys of why
	next int      // in ring, which is overwritten next
}

func endOf(k Key) Digest { return keyed.New(nil).Text(string(k.Server[:])).Text(k.Scope).Sum() }

// note remembers why a session of k ended.
func (e *ends) note(k Key, why Reason) {
	d := endOf(k)
	_, known := e.why[d]
	switch {
	case known:
	case e.why == nil:
		e.why = make(map[Digest]Reason)
		fallthrough
	case len(e.ring) < MaxEnds:
		e.ring = append(e.ring, d)
	default:
		delete(e.why, e.ring[e.next])
		e.ring[e.next] = d
		e.next = (e.next + 1) % MaxEnds
	}
	e.why[d] = why
}

// of returns why the last session of k ended; empty when there was none, or that is
// forgotten.
func (e *ends) of(k Key) Reason {
	if len(e.why) == 0 {
		return ""
	}
	return e.why[endOf(k)]
}

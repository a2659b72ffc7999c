package pooldebug

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

// query says which sessions are shown, and in which order.
type query struct {
	words  []string // all of which a session has somewhere
	key    string
	down   bool
	closed bool // closed ones too
	limit  int
}

// candidate is a session that may be shown: as the pool describes it, or as it was
// when it closed.
type candidate struct {
	mcppool.SessionInfo
	closed time.Time
	reason string
}

// compare has the orders that there are.
var compare = map[string]func(a, b *candidate) int{
	"id":       func(a, b *candidate) int { return compareIDs(a.ID, b.ID) },
	"server":   func(a, b *candidate) int { return cmp.Compare(a.Server, b.Server) },
	"scope":    func(a, b *candidate) int { return cmp.Compare(a.Scope, b.Scope) },
	"state":    func(a, b *candidate) int { return cmp.Compare(a.status(), b.status()) },
	"opened":   func(a, b *candidate) int { return a.Opened.Compare(b.Opened) },
	"used":     func(a, b *candidate) int { return a.lastUsed().Compare(b.lastUsed()) },
	"calls":    func(a, b *candidate) int { return cmp.Compare(a.Calls, b.Calls) },
	"inflight": func(a, b *candidate) int { return cmp.Compare(a.InFlight, b.InFlight) },
}

// compareIDs has those of a pool in the order in which they were given: they end
// in a number.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// parseQuery reads q (words), sort (a key, descending behind a minus), closed
// ("no" leaves out closed sessions) and limit. What it doesn't know is as if it
// weren't there.
func parseQuery(v url.Values) query {
	q := query{
		words:  strings.Fields(strings.ToLower(v.Get("q"))),
		closed: v.Get("closed") != "no",
		limit:  maxShown,
	}
	q.key, q.down = strings.CutPrefix(v.Get("sort"), "-")
	if compare[q.key] == nil {
		q.key, q.down = "opened", true
	}
	if n, err := strconv.Atoi(v.Get("limit")); err == nil && n >= 0 {
		q.limit = n
	}
	return q
}

// status is the state as people see it.
func (s *candidate) status() string {
	switch {
	case s.State == "closed":
		return "closed: " + s.reason
	case s.State != "live":
		return s.State
	case s.Spare:
		return "spare"
	case s.InFlight > 0:
		return "busy"
	default:
		return "idle"
	}
}

// lastUsed is when a session last had something to do.
func (s *candidate) lastUsed() time.Time {
	last := s.Opened
	for _, t := range [...]time.Time{s.LastUsed, s.ToolSince, s.closed} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func (q *query) matches(s *candidate) bool {
	for _, word := range q.words {
		if !s.contains(word) {
			return false
		}
	}
	return true
}

func (s *candidate) contains(word string) bool {
	in := func(text string) bool { return strings.Contains(strings.ToLower(text), word) }
	return in(s.ID) || in(s.Server) || in(s.Scope) || in(s.status()) || in(s.Tool) || in(s.LastError) || in(s.Protocol) ||
		s.Info != nil && (in(s.Info.Name) || in(s.Info.Version)) || s.PID != 0 && in(strconv.Itoa(s.PID))
}

// sort puts open sessions before closed ones, and equal ones in one order.
func (q *query) sort(found []*candidate) {
	order := compare[q.key]
	slices.SortFunc(found, func(a, b *candidate) int {
		if a.closed.IsZero() != b.closed.IsZero() {
			if a.closed.IsZero() {
				return -1
			}
			return 1
		}
		c := order(a, b)
		if q.down {
			c = -c
		}
		return cmp.Or(c, b.Opened.Compare(a.Opened), compareIDs(b.ID, a.ID))
	})
}

package pooldebug

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// query says which sessions are shown, and in which order.
type query struct {
	words  []string // all of which a session has somewhere
	key    string
	down   bool
	closed bool // closed ones too
	limit  int
}

// compare has the orders that there are.
var compare = map[string]func(a, b *sessionInfo) int{
	"id":       func(a, b *sessionInfo) int { return compareIDs(a.ID, b.ID) },
	"server":   func(a, b *sessionInfo) int { return cmp.Compare(a.Server, b.Server) },
	"scope":    func(a, b *sessionInfo) int { return cmp.Compare(a.Scope, b.Scope) },
	"state":    func(a, b *sessionInfo) int { return cmp.Compare(a.status(), b.status()) },
	"opened":   func(a, b *sessionInfo) int { return cmp.Compare(a.Opened, b.Opened) },
	"used":     func(a, b *sessionInfo) int { return cmp.Compare(a.lastUsed(), b.lastUsed()) },
	"calls":    func(a, b *sessionInfo) int { return cmp.Compare(a.Calls, b.Calls) },
	"inflight": func(a, b *sessionInfo) int { return cmp.Compare(a.InFlight, b.InFlight) },
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
func (s *sessionInfo) status() string {
	switch {
	case s.State == "closed":
		return "closed: " + s.Reason
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
func (s *sessionInfo) lastUsed() int64 { return max(s.Opened, s.Used, s.ToolSince, s.Closed) }

func (q *query) matches(s *sessionInfo) bool {
	if len(q.words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{
		s.ID, s.Server, s.Scope, s.status(), s.Tool, s.Name, s.Version, s.Protocol, s.LastError, strconv.Itoa(s.PID),
	}, "\n"))
	return !slices.ContainsFunc(q.words, func(w string) bool { return !strings.Contains(text, w) })
}

// sort puts open sessions before closed ones, and equal ones in one order.
func (q *query) sort(rows []sessionInfo) {
	slices.SortFunc(rows, func(a, b sessionInfo) int {
		c := compare[q.key](&a, &b)
		if q.down {
			c = -c
		}
		return cmp.Or(cmp.Compare(min(a.Closed, 1), min(b.Closed, 1)), c, cmp.Compare(b.Opened, a.Opened), compareIDs(b.ID, a.ID))
	})
}

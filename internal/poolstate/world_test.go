package poolstate_test

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

var errNoLuck = errors.New("no such luck")

// borrow is one caller that has joined and not left.
type borrow struct {
	number int
	want   *poolstate.Want
	s      *poolstate.Session
	place  *poolstate.Place
}

// mayCall reports whether it is the caller's turn in a live session.
func (b *borrow) mayCall() bool { return b.s.Status() == poolstate.Live && b.place == nil }

// called reports whether the caller's wait is over.
func (b *borrow) called() bool {
	if b.place == nil {
		return false
	}
	select {
	case <-b.place.Called():
		return true
	default:
		return false
	}
}

// world does what a State asks for, and plays those who call its methods.
type world struct {
	t          *rapid.T
	st         *poolstate.State
	now        poolstate.Moment
	connecting []*poolstate.Session
	closing    []*poolstate.Session
	probing    []*poolstate.Session
	lost       map[*poolstate.Session]chan struct{}
	borrows    []*borrow
	joins      int
	refused    []error // what callers were told that had joined
	policies   []poolstate.Policy
	keys       map[*poolstate.Session]poolstate.Key // of the bound ones, as they were begun
	sleepy     bool                                 // callers that are called look at it only when told to
}

func newWorld(t *rapid.T, cfg poolstate.Config, limits poolstate.Limits) *world {
	lost := map[*poolstate.Session]chan struct{}{}
	return &world{t: t, st: poolstate.New(cfg, limits), now: time.Second, lost: lost, policies: []poolstate.Policy{
		{IdleTimeout: 5 * time.Second},
		{Exclusive: true},
		{Shared: true, Processes: 2, Concurrent: true},
		{Shared: true, IdleTimeout: time.Second},
		{Spares: 1},
		{Remote: true},
		{Bound: true, Spares: 1},
	}, keys: map[*poolstate.Session]poolstate.Key{}}
}

// want is what a caller asks of one of the servers.
func (w *world) want(server int, scope string) *poolstate.Want {
	return &poolstate.Want{
		Key:    poolstate.Key{Server: poolstate.Digest{byte(server)}, Scope: scope},
		Policy: w.policies[server],
	}
}

// done does the actions of an event, and looks at what it has left.
func (w *world) done() {
	for _, a := range w.st.Actions() {
		switch a.Do {
		case poolstate.Connect:
			w.connecting = append(w.connecting, a.Session)
		case poolstate.Close:
			w.closing = append(w.closing, a.Session)
		case poolstate.Probe:
			w.probing = append(w.probing, a.Session)
		case poolstate.Own:
			a.Session.Owner = a.Session.Caller
		}
		if a.Session != nil && a.Session.Owner == nil {
			a.Session.Owner = "nobody"
		}
	}
	if err := w.st.Check(); err != nil {
		w.t.Fatalf("at %s: %v", w.now, err)
	}
	w.checkBound()
	for _, b := range w.borrows {
		if !w.sleepy && b.called() {
			w.look(b) // and whoever that wakes
			return
		}
	}
}

// checkBound sees to it that what belongs to a scope from its start never becomes
// another's.
func (w *world) checkBound() {
	for s := range w.st.All {
		if !s.Policy().Bound {
			continue
		}
		key, known := w.keys[s]
		switch {
		case !known:
			w.keys[s] = s.Key
		case key != s.Key, s.Spare(), s.Visited():
			w.t.Fatalf("at %s: a bound session of %q is %q's", w.now, key.Scope, s.Key.Scope)
		}
	}
}

func (w *world) join(server int, scope string) (*borrow, error) {
	defer w.done()
	b := &borrow{number: w.joins, want: w.want(server, scope)}
	w.joins++
	if err := w.enter(b); err != nil {
		return nil, err
	}
	w.borrows = append(w.borrows, b)
	return b, nil
}

func (w *world) enter(b *borrow) (err error) {
	b.s, b.place, err = w.st.Join(b.want, w.now)
	if err == nil && b.s.Owner == nil {
		b.s.Owner = b
	}
	if err == nil && b.place != nil {
		b.place.Caller = b
	}
	return err
}

// look is what a caller does that was called.
func (w *world) look(b *borrow) {
	s, place, err := w.st.Proceed(b.place, w.now)
	if err == nil {
		b.s, b.place = s, place
		if place == nil && s.Cause() == nil && (s.Lost() || s.Stale()) {
			why := poolstate.Reason("")
			if s.Lost() {
				why = poolstate.Crashed
			}
			w.st.Leave(s, nil, why, w.now)
			err = w.enter(b)
		}
	}
	if err != nil {
		w.refused = append(w.refused, err)
		w.forget(b)
	}
	w.done()
}

func (w *world) forget(b *borrow) {
	w.borrows = slices.DeleteFunc(w.borrows, func(other *borrow) bool { return other == b })
}

func (w *world) leave(b *borrow, why poolstate.Reason) {
	w.forget(b)
	if b.mayCall() {
		b.s.Called()
	}
	w.st.Leave(b.s, b.place, why, w.now)
	w.done()
}

// connected ends the connect of s, well or not.
func (w *world) connected(s *poolstate.Session, err error) {
	w.connecting = slices.DeleteFunc(w.connecting, func(other *poolstate.Session) bool { return other == s })
	var wanted bool
	if err == nil {
		w.lost[s] = make(chan struct{})
		wanted = w.st.Connected(s, w.lost[s], w.now)
	} else {
		wanted = w.st.Failed(s, err, w.now)
	}
	if !wanted || err != nil {
		w.closing = append(w.closing, s)
	}
	w.done()
}

// live are the sessions that are, in the order in which they were begun.
func (w *world) live() (all []*poolstate.Session) {
	for s := range w.st.All {
		if s.Status() == poolstate.Live {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *poolstate.Session) int { return int(a.ID) - int(b.ID) })
	return all
}

// die loses the connection of s.
func (w *world) die(s *poolstate.Session) {
	if lost := w.lost[s]; lost != nil && !s.Lost() {
		close(lost)
		w.st.Lost(s, w.now)
		w.done()
	}
}

// probed ends the look at s.
func (w *world) probed(s *poolstate.Session, answers bool) {
	w.probing = slices.DeleteFunc(w.probing, func(other *poolstate.Session) bool { return other == s })
	if answers {
		w.st.Answered(s)
	} else {
		w.st.Wedged(s, errNoLuck, w.now)
	}
	w.done()
}

func (w *world) closed(s *poolstate.Session) {
	w.closing = slices.DeleteFunc(w.closing, func(other *poolstate.Session) bool { return other == s })
	w.st.Closed(s, w.now)
	w.done()
}

// drain ends everything, and looks whether anything is remembered.
func (w *world) drain() {
	w.st.Refuse()
	for s := range w.st.All {
		w.st.Kill(s, errNoLuck, poolstate.Shutdown, w.now)
	}
	w.done()
	for len(w.borrows) > 0 {
		w.leave(w.borrows[0], "")
	}
	for len(w.connecting) > 0 {
		w.connected(w.connecting[0], errNoLuck)
	}
	for len(w.closing) > 0 {
		w.closed(w.closing[0])
	}
	if n := w.st.Remembered(); n != 0 {
		w.t.Fatalf("%d things are remembered of nothing", n)
	}
}

func pick[T any](t *rapid.T, label string, from []T) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(t, label)]
}

func drawLimits(t *rapid.T) poolstate.Limits {
	n := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3})
	return poolstate.Limits{
		MaxProcesses: n.Draw(t, "MaxProcesses"), MaxStarting: n.Draw(t, "MaxStarting"),
		MaxPerScope: n.Draw(t, "MaxPerScope"), MaxPerServer: n.Draw(t, "MaxPerServer"),
		MaxWaiting: n.Draw(t, "MaxWaiting"),
	}
}

// step is one event of any kind.
func (w *world) step(server int, scope string) {
	t := w.t
	w.now += rapid.SampledFrom([]time.Duration{0, time.Millisecond, 200 * time.Millisecond, 2 * time.Second}).Draw(t, "later")
	switch rapid.IntRange(0, 21).Draw(t, "event") {
	case 0, 1, 2, 3:
		_, _ = w.join(server, scope)
	case 4, 5, 6:
		if len(w.borrows) > 0 {
			why := rapid.SampledFrom([]poolstate.Reason{"", "", "", poolstate.Crashed, "timeout"}).Draw(t, "why")
			w.leave(pick(t, "borrow", w.borrows), why)
		}
	case 7, 8, 9:
		if len(w.connecting) > 0 {
			err := rapid.SampledFrom([]error{nil, nil, nil, errNoLuck}).Draw(t, "connect")
			w.connected(pick(t, "connect of", w.connecting), err)
		}
	case 10, 11:
		if len(w.closing) > 0 {
			w.closed(pick(t, "close of", w.closing))
		}
	case 12:
		if g := w.st.Group(poolstate.Digest{byte(server)}); g != nil {
			w.st.KillAll(g, errNoLuck, poolstate.ServerClosed, w.now)
		}
		w.st.KillScope(scope, errNoLuck, "scope closed", w.now)
		w.done()
	case 13:
		w.st.SetLimits(drawLimits(t), w.now)
		w.done()
	case 14:
		w.st.Expire(w.now)
		w.done()
	case 15:
		_, _ = w.st.Prewarm(w.want(0, ""), 1, w.now)
		w.done()
	case 16:
		if len(w.borrows) > 0 {
			if b := pick(t, "doubt", w.borrows); b.mayCall() || b.s.Status() == poolstate.Connecting {
				w.st.Doubt(b.s)
				w.done()
			}
		}
	case 17:
		if len(w.probing) > 0 {
			w.probed(pick(t, "probe of", w.probing), rapid.Bool().Draw(t, "answers"))
		}
	case 18:
		if g := w.st.Group(poolstate.Digest{byte(server)}); g != nil {
			for s := range g.Members {
				w.st.Retire(s, errNoLuck, poolstate.Retired, w.now)
			}
			w.done()
		}
	case 19:
		if live := w.live(); len(live) > 0 {
			w.die(pick(t, "dies", live))
		}
	case 20, 21:
		_, _ = w.visit(server, scope)
	}
	for _, b := range slices.Clone(w.borrows) {
		if b.called() && rapid.Bool().Draw(t, "looks") {
			w.look(b)
		}
	}
}

package poolstate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcppool/mcppool/internal/poolstate"
)

// big is a State with n idle sessions, each of a scope of its own, and what it waits for.
func big(b *testing.B, n int, limits poolstate.Limits) (*poolstate.State, []*poolstate.Session) {
	b.Helper()
	st := poolstate.New(poolstate.Config{}, limits)
	all := make([]*poolstate.Session, n)
	for i := range all {
		s, place := begin(b, st, &poolstate.Want{Key: poolstate.Key{Scope: fmt.Sprint(i)}, Policy: hour}, poolstate.Moment(i+1))
		st.Leave(s, place, "", poolstate.Moment(i+1))
		st.Actions()
		all[i] = s
	}
	return st, all
}

var hour = poolstate.Policy{IdleTimeout: time.Hour}

// begin joins a new session and brings it up.
func begin(b *testing.B, st *poolstate.State, w *poolstate.Want, now poolstate.Moment) (*poolstate.Session, *poolstate.Place) {
	b.Helper()
	s, place, err := st.Join(w, now)
	if err != nil {
		b.Fatal(err)
	}
	st.Actions()
	st.Connected(s, nil, now)
	if s, place, err = st.Proceed(place, now); err != nil {
		b.Fatal(err)
	}
	st.Actions()
	return s, place
}

// BenchmarkEvent is what one event costs beside many sessions that it doesn't concern.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		now := poolstate.Moment(n + 1)
		warm := poolstate.Want{Key: poolstate.Key{Scope: "0"}, Policy: hour}
		b.Run(fmt.Sprintf("call/sessions=%d", n), func(b *testing.B) {
			st, _ := big(b, n, poolstate.Limits{})
			for b.Loop() {
				s, place, _ := st.Join(&warm, now)
				st.Actions()
				st.Leave(s, place, "", now)
				st.Actions()
			}
		})
		b.Run(fmt.Sprintf("begin/sessions=%d", n), func(b *testing.B) {
			st, _ := big(b, n, poolstate.Limits{})
			i := 0
			for b.Loop() {
				i++
				s, place := begin(b, st, &poolstate.Want{Key: poolstate.Key{Scope: fmt.Sprint("new ", i)}, Policy: hour}, now)
				st.Leave(s, place, poolstate.Retired, now)
				st.Actions()
				st.Closed(s, now)
			}
		})
		b.Run(fmt.Sprintf("visit/sessions=%d", n), func(b *testing.B) {
			st, _ := big(b, n, poolstate.Limits{})
			for b.Loop() {
				s, _, _ := st.Join(&poolstate.Want{Policy: hour, Any: true}, now)
				st.LeaveVisit(s, nil, "", now)
				st.Actions()
			}
		})
		for name, limits := range map[string]poolstate.Limits{"MaxProcesses": {MaxProcesses: n}, "MaxPerServer": {MaxPerServer: n}} {
			b.Run(fmt.Sprintf("evict/%s/sessions=%d", name, n), func(b *testing.B) {
				st, all := big(b, n, limits)
				i := 0
				for b.Loop() {
					now++
					s, place, _ := st.Join(&poolstate.Want{Key: poolstate.Key{Scope: fmt.Sprint("new", i)}, Policy: hour}, now)
					st.Actions()
					st.Closed(all[i%n], now) // the longest idle one
					st.Actions()
					st.Connected(s, nil, now)
					s, place, _ = st.Proceed(place, now)
					st.Leave(s, place, "", now)
					st.Actions()
					all[i%n] = s
					i++
				}
			})
		}
		b.Run(fmt.Sprintf("inspect/sessions=%d", n), func(b *testing.B) {
			st, all := big(b, n, poolstate.Limits{})
			i := 0
			for b.Loop() {
				st.Inspect(all[i%n], now)
				st.Answered(all[i%n])
				i++
			}
		})
		b.Run(fmt.Sprintf("counts/sessions=%d", n), func(b *testing.B) {
			st, _ := big(b, n, poolstate.Limits{})
			for b.Loop() {
				st.Counts()
			}
		})
		b.Run(fmt.Sprintf("call beside waiters/waiters=%d", n), func(b *testing.B) {
			st := poolstate.New(poolstate.Config{}, poolstate.Limits{MaxProcesses: 2})
			exclusive := poolstate.Policy{Exclusive: true}
			begin(b, st, &poolstate.Want{Key: poolstate.Key{Server: poolstate.Digest{1}, Scope: "lease"}, Policy: exclusive}, 1)
			s, place := begin(b, st, &warm, 1)
			st.Leave(s, place, "", 1)
			for i := range n {
				_, _, _ = st.Join(&poolstate.Want{Key: poolstate.Key{Server: poolstate.Digest{1}, Scope: fmt.Sprint("w", i)}, Policy: exclusive}, 1)
			}
			st.Actions()
			for b.Loop() {
				s, place, _ := st.Join(&warm, now)
				st.Actions()
				st.Leave(s, place, "", now)
				st.Actions()
			}
		})
	}
}

// BenchmarkExpire is the longest that the lock is held when all are due at once.
func BenchmarkExpire(b *testing.B) {
	st, _ := big(b, 100_000, poolstate.Limits{})
	now := 10 * time.Hour
	for b.Loop() {
		st.Expire(now)
		st.Actions()
	}
}

package backoff_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/backoff"
)

// world is an owner that obeys HeldOff, and what it knows itself.
type world struct {
	set     *backoff.Set[string]
	now     time.Duration
	starts  []*start // connecting
	lives   []*start // up
	heldOff bool
	paused  time.Duration // when the newest pause began
	pause   time.Duration
}

type start struct {
	attempt   backoff.Attempt[string]
	began, up time.Duration
}

func take(t *rapid.T, from *[]*start) *start {
	if len(*from) == 0 {
		t.Skip("none")
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	s := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return s
}

// trust begins afresh after a success.
func (w *world) trust() {
	if w.set.Held("k", w.now) {
		w.set.Forget("k")
		w.heldOff, w.paused, w.pause = false, 0, 0
	}
}

// failed notes what a failure brought, and holds it to the rules.
func (w *world) failed(t *rapid.T, s *start, pause time.Duration) {
	if pause == 0 {
		return
	}
	require.True(t, w.paused == 0 || s.began > w.paused, "it began before the pause that it prolongs")
	require.LessOrEqual(t, pause, config.Max)
	require.GreaterOrEqual(t, pause, config.Initial*3/4)
	w.heldOff, w.paused, w.pause = true, w.now, pause
}

func (w *world) trials() (n int) {
	for _, s := range w.starts {
		if s.attempt.Trial() && s.began > w.paused && w.heldOff {
			n++
		}
	}
	return n
}

func TestRulesHoldOverRandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{set: newSet(), now: second}
		w.set.SetRandom(func(atMost time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(atMost)).Draw(t, "less"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				w.now += time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms")) * time.Millisecond
			},
			"begin": func(t *rapid.T) {
				if wait(w.set, w.now) > 0 {
					t.Skip("held off")
				}
				s := &start{attempt: w.set.Begin("k", w.now), began: w.now}
				require.Equal(t, w.heldOff, s.attempt.Trial())
				w.starts = append(w.starts, s)
			},
			"come up": func(t *rapid.T) {
				s := take(t, &w.starts)
				w.set.Up(&s.attempt, w.now)
				s.up = w.now
				w.lives = append(w.lives, s)
				w.heldOff = false
				require.Zero(t, wait(w.set, w.now))
			},
			"fail": func(t *rapid.T) {
				s := take(t, &w.starts)
				w.trust()
				w.failed(t, s, w.set.Fail(&s.attempt, errBroken, w.now))
			},
			"give up": func(t *rapid.T) {
				s := take(t, &w.starts)
				w.set.GiveUp(&s.attempt)
				if s.attempt.Trial() && s.began > w.paused && w.heldOff {
					require.LessOrEqual(t, wait(w.set, w.now), max(w.paused+w.pause-w.now, 0), "as if it hadn't been")
				}
			},
			"die": func(t *rapid.T) {
				s := take(t, &w.lives)
				w.trust()
				pause := w.set.Died(&s.attempt, errBroken, w.now)
				if w.now-s.up >= config.MinUptime {
					require.Zero(t, pause)
				}
				w.failed(t, s, pause)
			},
			"trust": func(*rapid.T) { w.trust() },
			"": func(t *rapid.T) {
				d := wait(w.set, w.now)
				require.LessOrEqual(t, w.trials(), 1, "one trial at a time")
				switch {
				case !w.heldOff:
					require.Zero(t, d)
				case w.trials() == 1:
					require.Equal(t, config.Initial, d)
				default:
					require.Equal(t, max(w.paused+w.pause-w.now, 0), d)
				}
			},
		})
	})
}

// A server whose starts live, but for one in many, isn't held off however often it is
// started, how soon the others die, and in which order.
func TestServerWhoseStartsLiveIsNeverHeldOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := newSet(), second
		every := time.Duration(rapid.IntRange(50, 20_000).Draw(t, "ms between starts")) * time.Millisecond
		// At most one of those that are not known yet to live may die.
		apart := int(config.MinUptime/every) + 2 + rapid.IntRange(0, 100).Draw(t, "more apart")
		offset := rapid.IntRange(0, apart-1).Draw(t, "offset")
		var dying *backoff.Attempt[string]
		for i := range 5 * apart {
			now += every
			require.Zero(t, wait(s, now))
			if dying != nil {
				require.Zero(t, s.Died(dying, errBroken, now))
				dying = nil
			}
			switch a := s.Begin("k", now); {
			case i%apart != offset:
				s.Up(&a, now)
			case rapid.Bool().Draw(t, "dies soon"):
				s.Up(&a, now)
				dying = &a
			default:
				require.Zero(t, s.Fail(&a, errBroken, now))
			}
		}
	})
}

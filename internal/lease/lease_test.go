package lease_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/lease"
)

var errEnded, errSpoilt = errors.New("ended"), errors.New("spoilt")

// Whatever the order, the thing goes back once: with the end or the last request under
// way, whichever is later, or at once for a reason of the end.
func TestItGoesBackOnceAndNeverUnderARequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			s               lease.State
			running, backs  int
			ended, over     bool
			first, reason   string
			firstErr, known error
		)
		watch := func(<-chan struct{}) bool { return true }
		watched := rapid.Bool().Draw(t, "watched early")
		if watched {
			s.Done(watch)
		}
		gone := func(back bool, why string, now bool) {
			require.Equal(t, now && backs == 0, back)
			if back {
				backs++
				require.Equal(t, first, why)
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0, 1:
				require.Equal(t, !ended, s.Begin())
				if !ended {
					running++
				}
			case 2:
				if running > 0 {
					running--
					back, why := s.Finish()
					gone(back, why, ended && running == 0)
				}
			case 3:
				if running > 0 {
					reason = rapid.SampledFrom([]string{"timeout", "lost"}).Draw(t, "reason")
					s.Spoil(reason, errSpoilt)
					first, over = reason, true
					if firstErr == nil {
						firstErr = errSpoilt
					}
				}
			case 4:
				end, drop := rapid.SampledFrom([]string{"", "", "discarded"}).Draw(t, "why"), rapid.Bool().Draw(t, "drop")
				f := s.End
				if drop {
					f = s.Drop
				}
				if !ended && (first == "" || drop) {
					first = end
				}
				back, why := f(end, errEnded)
				gone(back, why, !ended && (running == 0 || end != ""))
				ended, over = true, true
				if firstErr == nil {
					firstErr = errEnded
				}
			}
			known, _ = s.Err()
			require.Equal(t, firstErr, known)
		}
		select {
		case <-s.Done(watch):
			require.True(t, over)
		default:
			require.False(t, over)
		}
	})
}

func TestDoneWatchesOnceAndLearnsOfOtherReasons(t *testing.T) {
	var s lease.State
	watches := 0
	watch := func(<-chan struct{}) bool { watches++; return true }
	done := s.Done(watch)
	require.Equal(t, done, s.Done(watch))
	require.Equal(t, 1, watches)
	s.Over()
	s.Over()
	<-done

	var late lease.State
	<-late.Done(func(<-chan struct{}) bool { return false })
}

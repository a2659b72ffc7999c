package breaker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/breaker"
)

var (
	config    = breaker.Config{After: 2, Initial: 8 * time.Second, Max: 30 * time.Second, MinUptime: 10 * time.Second, Cap: 3}
	errBroken = errors.New("broken")
)

func failing(times int) (*breaker.Set[string], time.Duration) {
	s := &breaker.Set[string]{Config: config}
	var pause time.Duration
	for range times {
		pause = s.Fail("k", errBroken, 1)
	}
	return s, pause
}

func TestPausesDoubleUpToTheirBoundLessAQuarter(t *testing.T) {
	for times, seconds := range map[int]int{1: 0, 2: 8, 3: 16, 4: 30, 5: 30, 33: 30, 100: 30} {
		want := time.Duration(seconds) * time.Second
		for range 20 {
			_, pause := failing(times)
			require.LessOrEqual(t, pause, want)
			require.GreaterOrEqual(t, pause, want*3/4)
		}
	}
}

func TestHeldOffUntilThePauseIsOverThenOneTrialAtATime(t *testing.T) {
	s, pause := failing(2)
	wait, reason := s.HeldOff("k", 1)
	require.Equal(t, pause, wait)
	require.Equal(t, errBroken, reason)
	wait, _ = s.HeldOff("k", 1+pause-1)
	require.EqualValues(t, 1, wait)
	wait, _ = s.HeldOff("k", 1+pause)
	require.Zero(t, wait)
	require.True(t, s.Try("k"))
	wait, _ = s.HeldOff("k", 1+pause)
	require.Positive(t, wait, "the trial is under way")
	s.GiveUp("k")
	wait, _ = s.HeldOff("k", 1+pause)
	require.Zero(t, wait)
}

func TestTrialThatHoldsLongEnoughIsTrusted(t *testing.T) {
	s, _ := failing(2)
	require.False(t, s.Held("k", time.Hour))
	s.Up("k", time.Minute)
	wait, _ := s.HeldOff("k", time.Minute)
	require.Zero(t, wait, "others may come up too")
	require.False(t, s.Try("k"), "no trial any more")
	require.False(t, s.Held("k", time.Minute+config.MinUptime-1))
	require.True(t, s.Held("k", time.Minute+config.MinUptime))
	require.Positive(t, s.Fail("k", errBroken, 2*time.Minute), "until then a failure counts on")
	require.False(t, s.Held("k", time.Hour))
	require.True(t, s.Forget("k"))
	require.False(t, s.Forget("k"))
}

func TestMemoryIsBounded(t *testing.T) {
	s := &breaker.Set[int]{Config: config}
	for i := range 10 {
		s.Fail(i, errBroken, 1)
	}
	require.Equal(t, 3, s.Len())
}

func TestSetThatIsOffRemembersNothing(t *testing.T) {
	var s breaker.Set[int]
	require.Zero(t, s.Fail(1, errBroken, 1))
	require.Zero(t, s.Len())
	require.False(t, s.Try(1))
	s.Up(1, 1)
	s.GiveUp(1)
}

func TestReasonIsReplacedOnlyIfItIsStillTheLast(t *testing.T) {
	s, _ := failing(2)
	better := errors.New("exit status 3")
	s.Explain("k", better, errBroken)
	_, reason := s.HeldOff("k", 1)
	require.Equal(t, errBroken, reason)
	s.Explain("k", errBroken, better)
	_, reason = s.HeldOff("k", 1)
	require.Equal(t, better, reason)
}

package backoff_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/backoff"
)

var (
	config = backoff.Config{
		Failures: 2, Initial: 8 * time.Second, Max: 30 * time.Second, MinUptime: 10 * time.Second, Cap: 3,
	}
	errBroken = errors.New("broken")
)

const second = time.Second

func newSet() *backoff.Set[string] { return &backoff.Set[string]{Config: config} }

// fail begins and fails an attempt.
func fail(s *backoff.Set[string], now time.Duration) (pause time.Duration) {
	a := s.Begin("k", now)
	return s.Fail(&a, errBroken, now)
}

func up(s *backoff.Set[string], now time.Duration) *backoff.Attempt[string] {
	a := s.Begin("k", now)
	s.Up(&a, now)
	return &a
}

func wait(s *backoff.Set[string], now time.Duration) time.Duration {
	d, _ := s.HeldOff("k", now)
	return d
}

func TestPausesDoubleUpToTheirBoundLessAQuarter(t *testing.T) {
	for range 20 {
		s, now := newSet(), second
		for _, seconds := range []int{0, 8, 16, 30, 30, 30, 30, 30, 30} {
			want := time.Duration(seconds) * second
			pause := fail(s, now)
			require.LessOrEqual(t, pause, want)
			require.GreaterOrEqual(t, pause, want*3/4)
			require.Equal(t, pause, wait(s, now))
			now += pause
		}
	}
}

func TestPauseOfAThingThatFailedForeverIsTheBound(t *testing.T) {
	s, now := newSet(), second
	for range 200 {
		now += fail(s, now) + 1
	}
	require.LessOrEqual(t, fail(s, now), config.Max)
	require.GreaterOrEqual(t, wait(s, now), config.Max*3/4)
}

func TestHeldOffUntilThePauseIsOverThenOneTrialAtATime(t *testing.T) {
	s := newSet()
	fail(s, 1)
	require.Zero(t, wait(s, 1), "one failure is let through")
	pause := fail(s, 1)
	_, reason := s.HeldOff("k", 1)
	require.Equal(t, errBroken, reason)
	require.EqualValues(t, 1, wait(s, pause))
	now := 1 + pause
	require.Zero(t, wait(s, now))
	trial := s.Begin("k", now)
	require.True(t, trial.Trial())
	require.Equal(t, config.Initial, wait(s, now), "the trial is under way")
	besides := s.Begin("k", now)
	require.False(t, besides.Trial(), "there is one already")
	s.GiveUp(&trial)
	require.Zero(t, wait(s, now))
	trial = s.Begin("k", now)
	require.GreaterOrEqual(t, s.Fail(&trial, errBroken, now), 2*config.Initial*3/4)
}

func TestBurstOfFailuresBringsTheFirstPauseAlone(t *testing.T) {
	s := newSet()
	var burst []backoff.Attempt[string]
	for range 50 {
		burst = append(burst, s.Begin("k", second))
	}
	for i := range burst {
		s.Fail(&burst[i], errBroken, second+time.Duration(i))
	}
	require.LessOrEqual(t, wait(s, second), config.Initial+1)
}

func TestStragglerOfABurstLeavesTheTrialAndItsSuccessAlone(t *testing.T) {
	s := newSet()
	old, older := s.Begin("k", second), s.Begin("k", second)
	fail(s, second)
	now := second + fail(s, second)
	trial := s.Begin("k", now)
	require.Zero(t, s.Fail(&old, errBroken, now))
	require.Positive(t, wait(s, now), "the trial is still under way")
	s.Up(&trial, now)
	require.Zero(t, wait(s, now), "it came up: others may be started")
	require.Zero(t, s.Fail(&older, errBroken, now))
	require.Zero(t, wait(s, now))
}

func TestAnyAttemptThatComesUpEndsThePause(t *testing.T) {
	s := newSet()
	old := s.Begin("k", second)
	fail(s, second)
	fail(s, second)
	require.Positive(t, wait(s, second))
	s.Up(&old, second)
	require.Zero(t, wait(s, second))
	a := s.Begin("k", second+1)
	require.False(t, a.Trial())
	require.GreaterOrEqual(t, s.Fail(&a, errBroken, second+1), 2*config.Initial*3/4, "the row goes on")
}

func TestTrialOfAnEarlierPauseIsNotThatOfTheNext(t *testing.T) {
	s := newSet()
	straggler := s.Begin("k", second)
	fail(s, second)
	now := second + fail(s, second)
	trial := s.Begin("k", now)
	s.Up(&straggler, now)
	now++
	pause := fail(s, now)
	require.Equal(t, pause, wait(s, now), "it is held off for the pause, not for the old trial")
	require.Zero(t, s.Fail(&trial, errBroken, now))
	now += pause
	require.Zero(t, wait(s, now))
}

func TestSuccessIsWhatLivedForMinUptimeAlthoughOthersDied(t *testing.T) {
	s := newSet()
	fail(s, second)
	old := up(s, 2*second)
	died := up(s, 3*second)
	require.Zero(t, wait(s, 4*second))
	require.False(t, s.Held("k", 12*second-1))
	require.True(t, s.Held("k", 12*second))
	require.Zero(t, s.Died(old, errBroken, 12*second), "it had lived long enough")
	require.Zero(t, s.Died(died, errBroken, 12*second), "a first failure")
	require.False(t, s.Held("k", 12*second), "the success was before")
	up(s, 13*second)
	require.Zero(t, fail(s, 23*second), "a first failure again")
	require.Equal(t, 1, s.Len())
	require.False(t, s.Forget("k"))
	require.Zero(t, s.Len())
}

func TestDeathSoonAfterTheStartIsAFailureOnce(t *testing.T) {
	s := newSet()
	a, b := up(s, second), up(s, second)
	require.Zero(t, s.Died(a, errBroken, 2*second))
	require.Zero(t, s.Died(a, errBroken, 2*second))
	require.Positive(t, s.Died(b, errBroken, second+config.MinUptime-1))
	require.True(t, s.Forget("k"))
}

func TestSuccessThatBeganBeforeTheFailuresDoesNotEndThePause(t *testing.T) {
	s := newSet()
	up(s, second)
	now := second + config.MinUptime - 1
	fail(s, now)
	fail(s, now)
	require.False(t, s.Held("k", now+1))
	require.Positive(t, wait(s, now+1))
}

func TestThingsDoNotConcernEachOtherAndMemoryIsBounded(t *testing.T) {
	s := &backoff.Set[int]{Config: config}
	for i := range 10 {
		for range 2 {
			a := s.Begin(i, 1)
			s.Fail(&a, errBroken, 1)
		}
		d, _ := s.HeldOff(i+1, 1)
		require.Zero(t, d)
	}
	require.Equal(t, 3, s.Len())
}

func TestSetThatIsOffRemembersNothing(t *testing.T) {
	var s backoff.Set[string]
	a := s.Begin("k", 1)
	require.False(t, a.Trial())
	require.Zero(t, s.Fail(&a, errBroken, 1))
	s.Up(&a, 1)
	require.Zero(t, s.Died(&a, errBroken, 1))
	s.GiveUp(&a)
	require.Zero(t, s.Len())
	require.False(t, s.Held("k", 1))
}

func TestReasonIsReplacedOnlyIfItIsStillTheLast(t *testing.T) {
	s := newSet()
	fail(s, 1)
	fail(s, 1)
	better := errors.New("exit status 3")
	s.Explain("k", better, errBroken)
	_, reason := s.HeldOff("k", 1)
	require.Equal(t, errBroken, reason)
	s.Explain("k", errBroken, better)
	_, reason = s.HeldOff("k", 1)
	require.Equal(t, better, reason)
}

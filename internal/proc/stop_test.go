package proc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

func TestSharesOfStopFollowItsTimeout(t *testing.T) {
	const s = time.Second
	for _, c := range []struct{ timeout, want, grace, rest time.Duration }{
		{10 * s, 0, 5 * s, 4 * s},
		{40 * s, 0, 20 * s, 19 * s},
		{s, 0, s / 2, s * 4 / 10},
		{10 * s, 2 * s, 2 * s, 7 * s},
		{10 * s, 9 * s, 9 * s, 0},
		{10 * s, time.Minute, 9 * s, 0},
		{0, 0, 0, 0},
		{0, s, 0, 0},
	} {
		grace, rest := proc.StopPhases(c.timeout, c.want)
		require.Equal(t, c.grace, grace, "%+v", c)
		require.Equal(t, c.rest, rest, "%+v", c)
	}
}

func TestSigtermComesWhenTheGraceIsOver(t *testing.T) {
	requireSigterm(t)
	cfg := selfConfig(t, "slow-exit", "1h")
	cfg.Grace = time.Millisecond
	p := start(t, cfg)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	require.NoError(t, p.Stop(time.Hour))
	require.Equal(t, "exit status 9", p.Exit().String())
}

func TestProgramThatSavesItsStateOnSigtermCanGetThatFirst(t *testing.T) {
	requireSigterm(t)
	for _, termFirst := range []bool{false, true} {
		cfg := selfConfig(t, "saves-on-sigterm")
		cfg.TermFirst = func() bool { return termFirst }
		p := start(t, cfg)
		require.Equal(t, "ready\n", readLine(t, p))
		drain(p)
		require.NoError(t, p.Stop(time.Hour))
		want := "exit status 1"
		if termFirst {
			want = "exit status 0"
		}
		require.Equal(t, want, p.Exit().String())
	}
}

func TestProgramThatOutlivesAFirstSigtermHasTheEndOfItsInputToo(t *testing.T) {
	requireSigterm(t)
	cfg := selfConfig(t, "sigterm-then-eof")
	cfg.TermFirst, cfg.Grace = func() bool { return true }, 20*time.Millisecond
	p := start(t, cfg)
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	require.NoError(t, p.Stop(time.Hour))
	require.Equal(t, "exit status 0", p.Exit().String())
}

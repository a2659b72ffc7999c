package poolstate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcppool/mcppool/internal/poolstate"
)

func TestASessionKnowsWhyTheLastOneOfItsKeyEnded(t *testing.T) {
	inWorld(t, poolstate.Limits{}, func(t *rapid.T, w *world) {
		server := rapid.SampledFrom([]int{0, 1, 3, 4, 6}).Draw(t, "server")
		last := poolstate.Reason("")
		for range rapid.IntRange(1, 4).Draw(t, "sessions") {
			b := w.up(server, "a")
			require.Equal(t, last, b.s.Follows())
			last = rapid.SampledFrom([]poolstate.Reason{poolstate.Crashed, poolstate.Idle, "timeout"}).Draw(t, "why")
			w.leave(b, last)
			for len(w.closing) > 0 {
				w.closed(w.closing[0])
			}
		}
		if server != 3 {
			require.Empty(t, w.up(server, "").s.Follows(), "a one-shot follows nothing")
		}
	})
}

func TestWhyASessionEndedIsRememberedForABoundedNumberOfKeys(t *testing.T) {
	st := poolstate.New(poolstate.Config{}, poolstate.Limits{})
	begin := func(i int) *poolstate.Session {
		s, _, err := st.Join(&poolstate.Want{Key: poolstate.Key{Scope: fmt.Sprint(i)}}, 1)
		require.NoError(t, err)
		return s
	}
	for i := range poolstate.MaxEnds + 10 {
		s := begin(i)
		st.Kill(s, errNoLuck, poolstate.Crashed, 1)
		st.Failed(s, errNoLuck, 1)
		st.Closed(s, 1)
	}
	for i := range 10 {
		require.Empty(t, begin(i).Follows())
	}
	require.Equal(t, poolstate.Crashed, begin(10).Follows())
	require.Equal(t, poolstate.Crashed, begin(poolstate.MaxEnds+9).Follows())
}

package mcppool_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestIdleSessionIsClosedWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		require.Equal(t, []int{0}, f.closed())
		time.Sleep(1)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
		require.Zero(t, mcppool.Remembered(p))
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 2)
	})
}

func TestIdleTimeBeginsWhenTheCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(10 * time.Minute)}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		require.Equal(t, []int{0}, f.closed())
		time.Sleep(1)
		synctest.Wait()
		require.Equal(t, []int{1}, f.closed())
	})
}

func TestReaperMeetsEachExpiryThoughItWakesForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: time.Minute})
		for i := range 3 {
			require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
			time.Sleep(10 * time.Second)
		}
		require.NoError(t, call(t.Context(), p, stdio, "0")) // at 30 s: expires at 90 s, after 1 and 2
		for _, step := range []struct {
			sleep time.Duration
			want  []int
		}{
			{40*time.Second - 1, []int{0, 0, 0}},
			{1, []int{0, 1, 0}},
			{10*time.Second - 1, []int{0, 1, 0}},
			{1, []int{0, 1, 1}},
			{10*time.Second - 1, []int{0, 1, 1}},
			{1, []int{1, 1, 1}},
		} {
			time.Sleep(step.sleep)
			synctest.Wait()
			require.Equal(t, step.want, f.closed())
		}
	})
}

func TestNegativeIdleTimeoutKeepsSessionsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{IdleTimeout: -1})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		time.Sleep(10000 * time.Hour)
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.Len(t, f.all(), 1)
	})
}

func TestBusySessionsOverTheCapAreServedAndTrimmedWhenTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 2})
		var calls []<-chan error
		for i := range 5 {
			calls = append(calls, after(func() error { return call(t.Context(), p, stdio, fmt.Sprint(i)) }))
		}
		synctest.Wait()
		require.Equal(t, 5, p.Stats().Kept)
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Equal(t, 2, p.Stats().Kept)
		require.EqualValues(t, 3, p.Stats().Connects-uint64(p.Stats().Kept))
	})
}

func TestCapEvictsTheLeastRecentlyUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 2})
		for _, scope := range []string{"a", "b", "a", "c"} {
			require.NoError(t, call(t.Context(), p, stdio, scope))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		require.Equal(t, []int{0, 1, 0}, f.closed(), "b went: a was used after it, c just now")
		require.EqualValues(t, 1, p.Stats().Closed[mcppool.ReasonLRU])
	})
}

func TestCapNeverEvictsABusySessionNorTheOneJustUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 1})
		busy := after(func() error { return call(t.Context(), p, stdio, "busy") })
		time.Sleep(time.Second / 2)
		require.NoError(t, call(within(t, 2*time.Second), p, stdio, "just used"))
		require.NoError(t, <-busy)
		synctest.Wait()
		require.Equal(t, []int{1, 0}, f.closed(), "busy ended first, so that it is the older one")
	})
}

func TestSessionJustUsedIsNotEvictedForBusyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 1})
		busy := after(func() error { return call(t.Context(), p, stdio, "busy") })
		synctest.Wait()
		f.call = nil
		require.NoError(t, call(t.Context(), p, stdio, "just used"))
		synctest.Wait()
		require.Equal(t, []int{0, 0}, f.closed(), "the only idle one was used just now")
		require.NoError(t, <-busy)
	})
}

func TestIdleSessionsMakeRoomAsSoonAsANewOneIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, &mcppool.Options{MaxSessions: 2})
		for _, scope := range []string{"a", "b"} {
			require.NoError(t, call(t.Context(), p, stdio, scope))
			time.Sleep(time.Second)
		}
		f.call = slowCalls(time.Minute)
		c := after(func() error { return call(t.Context(), p, stdio, "c") })
		synctest.Wait()
		require.Equal(t, []int{1, 0, 0}, f.closed())
		require.NoError(t, <-c)
	})
}

func TestNegativeCapIsNone(t *testing.T) {
	f := &fakes{}
	p := newPool(t, f, &mcppool.Options{MaxSessions: -1})
	for i := range 100 {
		require.NoError(t, call(t.Context(), p, stdio, fmt.Sprint(i)))
	}
	require.Equal(t, 100, p.Stats().Kept)
}

func TestOverlappingCallsOfAScopeRunOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Second)}
		p := newPool(t, f, nil)
		var calls []<-chan error
		for i := range 10 {
			calls = append(calls, after(func() error {
				_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: fmt.Sprint(i), Scope: "s"})
				return err
			}))
			synctest.Wait() // it has arrived
		}
		for _, c := range calls {
			require.NoError(t, <-c)
		}
		require.Len(t, f.all(), 1)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, f.all()[0].calls)
	})
}

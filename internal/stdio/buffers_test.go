package stdio

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSpareBufferIsTheLargestThatWasPutAndServesWhatItFits(t *testing.T) {
	var s spareBuffer
	require.Nil(t, s.take(1))
	small, large := make([]byte, 1<<20), make([]byte, 4<<20)
	require.Nil(t, s.put(small))
	require.Same(t, &small[0], &s.put(large)[0])
	require.Same(t, &small[0], &s.put(small)[0])
	require.Nil(t, s.take(4<<20+1), "it is too small")
	require.Nil(t, s.take(1<<20-1), "it is far too large")
	got := s.take(1 << 20)
	require.Len(t, got, 1<<20)
	require.Same(t, &large[0], &got[0])
	require.Nil(t, s.take(1<<20), "it is in use")
	require.NotNil(t, s.put(make([]byte, maxSpare+1)))
}

func TestTheSpareBufferIsCollectedOnceItIsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spareBuffer{watched: true} // the test says when the collector has run
		require.Nil(t, s.put(make([]byte, 1<<20)))
		time.Sleep(spareTime - 1)
		s.collected()
		require.NotNil(t, s.buf, "it was used a moment ago")
		require.True(t, s.watched)
		time.Sleep(1)
		s.collected()
		require.Nil(t, s.buf)
		require.False(t, s.watched)
	})
}

func TestTheCollectorLooksAtTheSpareBuffer(t *testing.T) {
	s := new(spareBuffer)
	s.put(make([]byte, 1<<20))
	s.mu.Lock()
	s.since = s.since.Add(-spareTime)
	s.mu.Unlock()
	require.Eventually(t, func() bool {
		runtime.GC()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.buf == nil
	}, 10*time.Second, time.Millisecond)
}

func TestGivingBackWhatWasNotLentAllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { putBuffer(nil) }))
}

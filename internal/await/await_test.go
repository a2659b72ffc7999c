package await_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/await"
)

func TestAChannelIsWaitedForUntilItIsClosedAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch := make(chan struct{})
		begun := time.Now()
		require.False(t, await.Closed(ch, 0))
		require.False(t, await.Closed(ch, -1))
		require.Zero(t, time.Since(begun))
		require.False(t, await.Closed(ch, time.Second))
		require.Equal(t, time.Second, time.Since(begun))

		time.AfterFunc(time.Second, func() { close(ch) })
		require.True(t, await.Closed(ch, time.Minute))
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.True(t, await.Closed(ch, 0), "it is closed")
	})
}

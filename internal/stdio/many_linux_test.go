package stdio_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

// leavesNoThread checks at the end of the test that there are about as many
// threads as when it was called. The runtime keeps those it once needed, a few
// for each processor: what is opened comes hundreds of times, and so would what
// it leaves.
func leavesNoThread(t testing.TB) {
	t.Helper()
	before := threads()
	t.Cleanup(func() { require.LessOrEqual(t, threads(), before+8*runtime.GOMAXPROCS(0)) })
}

func TestFiveHundredConnectionsLeaveTheHostAsItWas(t *testing.T) {
	leaves := leavesNothing(t)
	leavesNoThread(t)
	cfg := shellConfig(t, echoScript)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			for range 100 {
				c, err := stdio.Start(cfg)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := call(t.Context(), c, "echo", `{}`); text != "hello" {
					t.Error(text, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	leaves()
}

func TestTwoHundredFailedConnectionsLeaveTheHostAsItWas(t *testing.T) {
	leaves := leavesNothing(t)
	leavesNoThread(t)
	missing := serverConfig(t)
	missing.Proc.Path = "/no/such/file"
	dying := shellConfig(t, "exit 3")
	for range 100 {
		_, err := stdio.Start(missing)
		require.Error(t, err)

		c := open(t, dying)
		_, err = call(t.Context(), c, "echo", `{}`)
		require.Equal(t, 3, dead(t, err, stdio.ErrExited).Exit.Code)
		require.NoError(t, c.Close())
	}
	leaves()
}

package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

// hurry makes calls until callers read for themselves.
func hurry(t testing.TB, c *stdio.Conn) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !stdio.ReadByCallers(c); {
		require.True(t, time.Now().Before(deadline), "calls that follow closely are all read by the reader")
		mustCall(t, c, "echo", `{}`)
	}
}

func TestCallersReadForThemselvesWhileCallsFollowClosely(t *testing.T) {
	c := start(t, serverConfig(t, "fast"))
	require.False(t, stdio.ReadByCallers(c))
	for range 20 {
		hurry(t, c)
		for i := range 100 {
			require.NotEmpty(t, mustCall(t, c, "echo", fmt.Sprintf(`{"n":%d}`, 1+i*i*10)))
		}
		require.Eventually(t, func() bool { return !stdio.ReadByCallers(c) }, time.Second, time.Millisecond, "the reader goes on")
	}
}

func TestACallerWhoReadsLeavesWhenItsCtxEnds(t *testing.T) {
	c := start(t, serverConfig(t))
	for range 10 {
		hurry(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		within(t, 500*time.Millisecond, func() {
			_, err := call(ctx, c, "sleep", `{"ms":2000}`)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	require.Contains(t, mustCall(t, c, "seen", `{}`), "notifications/cancelled")
}

func TestOtherCallsAreAnsweredWhileACallerReads(t *testing.T) {
	c := start(t, serverConfig(t))
	for range 3 {
		hurry(t, c)
		slow := make(chan error, 1)
		go func() {
			_, err := call(t.Context(), c, "sleep", `{"ms":500}`)
			slow <- err
		}()
		for range 3 {
			mustCall(t, c, "echo", `{}`)
		}
		require.Empty(t, slow)
		require.NoError(t, <-slow)
	}
}

func TestAReadingCallersLastWordsAndItsDeathAreTold(t *testing.T) {
	for _, tool := range []string{"die", "last", "daemon"} {
		t.Run(tool, func(t *testing.T) {
			c := start(t, serverConfig(t))
			hurry(t, c)
			within(t, 2*time.Second, func() {
				_, err := call(t.Context(), c, tool, `{}`)
				var dead *stdio.DeadError
				if tool == "last" {
					require.NoError(t, err)
				} else {
					require.ErrorAs(t, err, &dead)
				}
				<-c.Done()
			})
		})
	}
}

func TestWhatComesBetweenCloseCallsIsHeard(t *testing.T) {
	got := make(chan string, 1)
	cfg := serverConfig(t)
	cfg.OnNotification = func(method string, _ json.RawMessage) { got <- method }
	c := start(t, cfg)
	for range 3 {
		hurry(t, c)
		// The server answers it late, to nobody.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := call(ctx, c, "sleep", `{"ms":300}`)
		cancel()
		require.Error(t, err)
		late := c.Stats().Late
		hurry(t, c)
		require.Eventually(t, func() bool { return c.Stats().Late > late }, 2*time.Second, time.Millisecond)
	}
	hurry(t, c)
	mustCall(t, c, "storm", `{"n":0}`)
	require.Equal(t, "notifications/tools/list_changed", <-got)
}

func TestACloseOrALossThatMeetsATakeBackIsNotMissed(t *testing.T) {
	for range 40 {
		c := open(t, serverConfig(t, "fast"))
		hurry(t, c)
		var wg sync.WaitGroup
		for range 1 + rand.IntN(2) {
			wg.Go(func() {
				for {
					if _, err := c.Call(t.Context(), stdio.ToolCall{Tool: "echo"}); err != nil {
						return
					}
					if rand.IntN(20) == 0 {
						time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		within(t, 2*time.Second, func() {
			if rand.IntN(2) == 0 {
				c.Kill()
			} else {
				require.NoError(t, c.Close())
			}
			<-c.Done()
			wg.Wait()
		})
		require.NoError(t, c.Close())
	}
}

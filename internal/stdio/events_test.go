package stdio

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/await"
)

func TestEventsAreHandledInOrderByAGoroutineThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		q := eventQueue{handle: func(e event) { time.Sleep(time.Second); got = append(got, e.method) }}
		var want []string
		for i := range 10 {
			method := []string{"notifications/progress", "notifications/x"}[i%2] + fmt.Sprint(i)
			q.push(event{method: method})
			want = append(want, method)
		}
		begin := time.Now()
		q.handled(context.Background(), q.newest())
		require.Equal(t, 10*time.Second, time.Since(begin))
		require.Equal(t, want, got)
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		require.Nil(t, q.idle)
	})
}

func TestWhatOnlyInformsIsDroppedFirstAndTheOldestOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got []string
		q := eventQueue{handle: func(e event) {
			<-release
			got = append(got, e.method+strings.TrimRight(string(e.params), "x"))
		}}
		push := func(method, params string) {
			q.push(event{method: method, params: []byte(params + strings.Repeat("x", maxEventBytes/4))})
		}
		push("first", "")
		synctest.Wait() // it is in the handler, and isn't counted
		push("notifications/progress", "1")
		push("notifications/resources/updated", "a")
		push("notifications/progress", "2")
		push("notifications/message", "3")
		push("notifications/progress", "4")
		q.push(event{method: "notifications/tools/list_changed"})
		q.push(event{method: "notifications/tools/list_changed"})
		require.LessOrEqual(t, q.held(), maxEventBytes)
		close(release)
		q.handled(t.Context(), q.newest())
		require.Equal(t, []string{
			"first", "notifications/resources/updateda", "notifications/message3", "notifications/progress4",
			"notifications/tools/list_changed",
		}, got)
		require.EqualValues(t, 2, q.drops())
	})
}

func TestAFloodOfWhatMattersIsBoundedTooAndListChangedSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		changed := false
		q := eventQueue{handle: func(e event) {
			<-release
			changed = changed || e.method == "notifications/tools/list_changed"
		}}
		q.push(event{method: "notifications/tools/list_changed"})
		q.push(event{method: "notifications/tools/list_changed"})
		for range 100 {
			q.push(event{method: "notifications/x", params: make([]byte, maxEventBytes/10)})
			require.LessOrEqual(t, q.held(), maxEventBytes)
		}
		close(release)
		q.handled(t.Context(), q.newest())
		require.True(t, changed)
	})
}

func TestTheWaitForHandlersEndsWithCtxAndWithTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		q := eventQueue{handle: func(event) { <-release }}
		q.push(event{method: "x"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		q.handled(ctx, q.newest())
		require.Equal(t, time.Second, time.Since(begin))

		time.AfterFunc(time.Second, func() { q.close() })
		q.handled(t.Context(), q.newest())
		require.Equal(t, 2*time.Second, time.Since(begin))
		idle := q.close()
		require.False(t, await.Closed(idle, time.Second))
		close(release)
		require.True(t, await.Closed(idle, time.Second))
		q.push(event{method: "late"})
		require.Zero(t, q.held())
	})
}

func (q *eventQueue) held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

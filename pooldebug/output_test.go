package pooldebug_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/pooldebug"
)

// told counts the events of each kind.
func told(s Snapshot) map[string]int {
	n := make(map[string]int)
	for _, e := range s.Events {
		n[e.Kind]++
	}
	return n
}

func TestAServerThatWritesWithoutEndPushesNothingElseOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pooldebug.New(nil)
		trace := page.Trace()
		trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: mcppool.Origin{SessionID: "pool-1", Server: "s"}})
		for range 100 {
			for i := range 400 {
				from := mcppool.Origin{SessionID: fmt.Sprint("pool-", i%4), Server: "s"}
				trace.Stderr(t.Context(), mcppool.StderrInfo{Origin: from, Line: "a line"})
				trace.Junk(t.Context(), mcppool.JunkInfo{Origin: from, Line: "another", Total: i})
			}
			time.Sleep(time.Second)
		}
		got := ask(t, page, "")
		require.Equal(t, map[string]int{"opened": 1, "stderr": 64, "junk on stdout": 64}, told(got))
		require.Equal(t, 100*(800-8), got.LeftOut)
	})
}

func TestALineIsSeenBesideAServerThatWritesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pooldebug.New(nil)
		trace := page.Trace()
		for range 1000 {
			trace.Stderr(t.Context(), mcppool.StderrInfo{Origin: mcppool.Origin{SessionID: "pool-1"}, Line: "again"})
		}
		trace.Stderr(t.Context(), mcppool.StderrInfo{Origin: mcppool.Origin{SessionID: "pool-2"}, Line: "out of memory"})
		got := ask(t, page, "")
		require.Equal(t, map[string]int{"stderr": 5}, told(got))
		require.Equal(t, 996, got.LeftOut)
		last := got.Events[4]
		require.Equal(t, "pool-2 out of memory", last.Session+" "+last.Text)
		time.Sleep(time.Second)
		trace.Stderr(t.Context(), mcppool.StderrInfo{Origin: mcppool.Origin{SessionID: "pool-1"}, Line: strings.Repeat("x", 4096)})
		got = ask(t, page, "")
		require.Equal(t, map[string]int{"stderr": 6}, told(got))
		require.Less(t, len(got.Events[5].Text), 1024)
	})
}

func TestALineThatIsLeftOutCostsNoMemory(t *testing.T) {
	page := pooldebug.New(nil)
	trace := page.Trace()
	from := mcppool.Origin{SessionID: "pool-1"}
	line := strings.Repeat("x", 4096)
	require.Less(t, testing.AllocsPerRun(10_000, func() { trace.Stderr(t.Context(), mcppool.StderrInfo{Origin: from, Line: line}) }), 1.0)
}

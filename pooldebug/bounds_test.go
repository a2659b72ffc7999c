package pooldebug_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/pagetest"
	"github.com/mcppool/mcppool/pooldebug"
)

// localAddr is the ctx of a request that came in at a URL's address.
func localAddr(t *testing.T, at string) context.Context {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	addr, err := net.ResolveTCPAddr("tcp", u.Host)
	require.NoError(t, err)
	return context.WithValue(t.Context(), http.LocalAddrContextKey, addr)
}

func TestWhatAPageRemembersIsBounded(t *testing.T) {
	page := pooldebug.New(nil)
	trace := page.Trace()
	long := errors.New(strings.Repeat("x", 1<<20))
	for i := range 5000 {
		from := mcppool.Origin{SessionID: fmt.Sprintf("pool-%d", i), Server: fmt.Sprintf("server-%d", i)}
		trace.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: 1})
		trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: from})
		if i%2 == 0 { // the others seem to connect for ever
			trace.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from, Took: time.Millisecond})
		}
		trace.BackoffChanged(t.Context(), mcppool.BackoffChangedInfo{Origin: mcppool.Origin{Server: from.Server}, State: mcppool.BackoffWaiting, Pause: time.Second})
		for range 3 {
			trace.CallEnd(t.Context(), mcppool.CallEndInfo{Origin: from, Tool: long.Error(), Outcome: mcppool.OutcomeOther, Err: long})
		}
		if i%2 == 0 {
			trace.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: from, Reason: mcppool.ReasonIdle, Lived: time.Second})
		}
	}
	require.Equal(t, pooldebug.Remembered{
		Open: 1024, Closed: 128, Connecting: 1024, Backoffs: 100, Calls: 256, Events: 256,
	}, page.Remembered())
	got := ask(t, page, "limit=100000")
	require.Len(t, got.Sessions, 128, "open ones are the pool's to tell of")
	require.Len(t, got.Servers, 100)
	for _, e := range got.Events {
		require.Less(t, len(e.Text)+len(e.Tool), 1024)
	}
	require.Less(t, len(got.Sessions[0].LastError), 1024)
}

func TestATimelineReachesFarBackHoweverManyCallsThereAre(t *testing.T) {
	page := pooldebug.New(nil)
	trace := page.Trace()
	from := mcppool.Origin{SessionID: "pool-1", Server: "s"}
	trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: from})
	for i := range 10_000 {
		done := mcppool.CallEndInfo{Origin: from, Tool: "t", Outcome: mcppool.OutcomeOK, Took: time.Microsecond}
		if i%2 == 1 {
			done.Outcome = mcppool.OutcomeOther
		}
		trace.CallEnd(t.Context(), done)
	}
	trace.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: from, Reason: mcppool.ReasonIdle, Lived: time.Second})
	n := 0
	spans := ask(t, page, "").Sessions[0].Spans
	for _, s := range spans {
		require.Equal(t, "failed", s.Kind, "a failure among them is seen")
		n += s.N
	}
	require.Equal(t, 10_000, n)
	require.Less(t, len(spans), 30)
}

func TestACallCostsLittleAndNoMemory(t *testing.T) {
	page := pooldebug.New(nil)
	trace := page.Trace()
	from := mcppool.Origin{SessionID: "pool-1", Server: "s"}
	trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: from})
	call := func() {
		trace.CallEnd(context.Background(), mcppool.CallEndInfo{Origin: from, Tool: "tool", Took: time.Millisecond, Outcome: mcppool.OutcomeOK})
	}
	for range 1000 {
		call() // the rings are full
	}
	require.Zero(t, testing.AllocsPerRun(1000, call))
}

func BenchmarkTraceOfACall(b *testing.B) {
	page := pooldebug.New(nil)
	trace := page.Trace()
	from := mcppool.Origin{SessionID: "pool-1", Server: "s"}
	trace.SessionOpened(b.Context(), mcppool.SessionOpenedInfo{Origin: from})
	done := mcppool.CallEndInfo{Origin: from, Tool: "t", Took: time.Millisecond, Outcome: mcppool.OutcomeOK}
	b.ReportAllocs()
	for b.Loop() {
		trace.CallEnd(b.Context(), done)
	}
}

func BenchmarkJSONWith10000Sessions(b *testing.B) {
	page := pooldebug.New(nil)
	pool, err := mcppool.New(&mcppool.Options{Dial: pagetest.Dial, MaxSessions: -1, Trace: page.Trace()})
	require.NoError(b, err)
	defer pool.Close()
	page.Attach(pool)
	for i := range 10_000 {
		_, err := pool.CallTool(b.Context(), pagetest.Named("a"), mcppool.Call{Tool: "t", Scope: fmt.Sprint(i)})
		require.NoError(b, err)
	}
	b.Run("asking the pool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range pool.Sessions() {
			}
		}
	})
	b.Run("describing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page.SnapshotOf("sort=-used")
		}
	})
	b.Run("searching", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page.SnapshotOf("q=scope&sort=-used")
		}
	})
}

func TestASessionThatIsClosingIsCountedOnce(t *testing.T) {
	s := pagetest.Show(t, nil, mcppool.Options{})
	trace := s.Page.Trace()
	require.NoError(t, s.Call(t, pagetest.Named("a"), "one", "t"))
	// The page hears of the end before the pool has forgotten the session.
	id := ask(t, s.Page, "").Sessions[0].ID
	trace.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: mcppool.Origin{SessionID: id}, Reason: mcppool.ReasonIdle, Lived: time.Second})
	got := ask(t, s.Page, "q=nothing")
	require.Equal(t, 1, got.Total)
	got = ask(t, s.Page, "")
	require.Len(t, got.Sessions, 1)
	require.Equal(t, "live", got.Sessions[0].State)
}

package pooldebug_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/pagetest"
	"github.com/mcppool/mcppool/pooldebug"
)

func TestAConnectIsTheStartOfAProcessAndAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pooldebug.New(nil)
		trace := page.Trace()
		connect := func(id string, processes int, err error) {
			from := mcppool.Origin{SessionID: id, Server: "s"}
			begun := time.Now()
			for range processes {
				time.Sleep(time.Second)
				trace.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: 1})
			}
			time.Sleep(3 * time.Second)
			if err == nil {
				trace.SessionOpened(t.Context(), mcppool.SessionOpenedInfo{Origin: from})
			}
			trace.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from, Took: time.Since(begun), Err: err})
			if err == nil {
				trace.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: from, Reason: mcppool.ReasonIdle, Lived: 0})
			}
		}
		connect("web", 0, nil)
		connect("usual", 1, nil)
		connect("asked first", 2, nil) // for its era, which ended the first process
		connect("broken", 1, errors.New("no"))
		for i, want := range []struct{ id, took, start, kind string }{
			{"web", "3s", "0s", "connect"},
			{"usual", "4s", "1s", "connect"},
			{"asked first", "5s", "2s", "connect"},
			{"broken", "4s", "1s", "connect failed"},
		} {
			got := ask(t, page, "sort=opened").Sessions[i]
			require.Equal(t, want.id, got.ID)
			require.Len(t, got.Spans, 1)
			require.Equal(t, want.took, duration(got.Spans[0].Took), want.id)
			require.Equal(t, want.start, duration(got.Spans[0].Start), want.id)
			require.Equal(t, want.kind, got.Spans[0].Kind, want.id)
		}
		require.Zero(t, page.Remembered().Connecting)
	})
}

func TestASessionThatConnectsTellsSinceWhenItsProcessRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pooldebug.New(nil)
		slow := func(ctx context.Context, srv mcppool.Server) (mcppool.Client, error) {
			time.Sleep(time.Minute)
			return pagetest.Dial(ctx, srv)
		}
		pool, err := mcppool.New(&mcppool.Options{Dial: slow, Trace: page.Trace()})
		require.NoError(t, err)
		defer pool.Close()
		page.Attach(pool)
		called := make(chan error, 1)
		go func() { called <- (&pagetest.Shown{Pool: pool}).Call(t, pagetest.Named("a"), "one", "t") }()
		synctest.Wait()
		got := ask(t, page, "").Sessions[0]
		require.Equal(t, "connecting", got.State)
		require.Zero(t, got.Running)
		time.Sleep(time.Second)
		page.Trace().ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: mcppool.Origin{SessionID: got.ID}, PID: 1})
		at := time.Now().UnixMilli()
		time.Sleep(time.Second)
		require.Equal(t, at, ask(t, page, "").Sessions[0].Running)
		require.NoError(t, <-called)
		require.Zero(t, ask(t, page, "").Sessions[0].Running)
	})
}

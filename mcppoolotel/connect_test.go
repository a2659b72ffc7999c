package mcppoolotel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// below gives the ended spans below another, in the order of their beginnings, as
// text: name, process, error.
func (b *bench) below(parent sdktrace.ReadOnlySpan) (lines []string, spans []sdktrace.ReadOnlySpan) {
	for _, s := range b.spans.Ended() {
		if s.Parent().SpanID() == parent.SpanContext().SpanID() {
			a := attrs(s)
			line := s.Name()
			for _, key := range []string{"process.pid", "error.type"} {
				if v, ok := a[key]; ok {
					line += fmt.Sprint(" ", v)
				}
			}
			lines, spans = append(lines, line), append(spans, s)
		}
	}
	return lines, spans
}

func TestAConnectShowsTheStartOfTheProcessAndTheHandshake(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{PoolName: "tools"})
	res, err := b.tools.CallTool(t.Context(), telemetrytest.Child(t, telemetrytest.Raw), mcppool.Call{Tool: "pid", Scope: "s"})
	require.NoError(t, err)
	pid := res.Content[0].(mcp.TextContent).Text

	connect := b.one(t, "mcppool.connect")
	lines, spans := b.below(connect)
	require.Equal(t, []string{"mcppool.spawn " + pid, "mcppool.handshake " + pid}, lines)
	spawn, handshake := spans[0], spans[1]
	require.Equal(t, connect.StartTime(), spawn.StartTime())
	require.Equal(t, spawn.EndTime(), handshake.StartTime())
	require.Equal(t, connect.EndTime(), handshake.EndTime())
	require.True(t, spawn.EndTime().After(spawn.StartTime()))
	require.True(t, handshake.EndTime().After(handshake.StartTime()))
	number, err := strconv.Atoi(pid)
	require.NoError(t, err)
	for _, s := range spans {
		require.Equal(t, trace.SpanKindInternal, s.SpanKind())
		require.Equal(t, codes.Unset, s.Status().Code)
		require.Equal(t, map[string]any{
			"process.pid":       int64(number),
			"network.transport": "pipe",
			"mcp.session.id":    attrs(connect)["mcp.session.id"],
			"mcppool.server":    attrs(connect)["mcppool.server"],
			"mcppool.pool.name": "tools",
		}, attrs(s))
	}
}

func TestAFailedConnectShowsWhichPartOfItFailed(t *testing.T) {
	missing := mcppool.Server{Command: "/no/such/program"}
	exiting := telemetrytest.Child(t, telemetrytest.Exiting)
	for name, tc := range map[string]struct {
		srv   mcppool.Server
		names []string
		text  string
	}{
		"spawn":     {missing, []string{"mcppool.spawn"}, "the server did not start"},
		"handshake": {exiting, []string{"mcppool.spawn", "mcppool.handshake"}, "the server did not connect (exit status 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
			tc.srv.Protocol = mcppool.ProtocolLegacy
			require.Error(t, b.call(t.Context(), tc.srv, "open"))
			_, spans := b.below(b.one(t, "mcppool.connect"))
			require.Len(t, spans, len(tc.names))
			for i, s := range spans {
				require.Equal(t, tc.names[i], s.Name())
				if i < len(spans)-1 {
					require.Equal(t, codes.Unset, s.Status().Code)
					continue
				}
				require.Equal(t, sdktrace.Status{Code: codes.Error, Description: tc.text}, s.Status())
				require.Equal(t, "start_failed", attrs(s)["error.type"])
			}
		})
	}
}

func TestAServerThatIsStartedAgainHasTwoSpawns(t *testing.T) {
	b := newBench(t, nil, mcppool.Options{}, mcppoolotel.Options{})
	res, err := b.tools.CallTool(t.Context(), telemetrytest.Child(t, telemetrytest.Old), mcppool.Call{Tool: "pid", Scope: "s"})
	require.NoError(t, err)
	lines, spans := b.below(b.one(t, "mcppool.connect"))
	require.Len(t, spans, 4)
	first, second := attrs(spans[0])["process.pid"], res.Content[0].(mcp.TextContent).Text
	require.NotEqual(t, fmt.Sprint(first), second)
	require.Equal(t, []string{
		fmt.Sprint("mcppool.spawn ", first), fmt.Sprint("mcppool.handshake ", first, " restarted"),
		"mcppool.spawn " + second, "mcppool.handshake " + second,
	}, lines)
	for i, s := range spans[1:] {
		require.Equal(t, spans[i].EndTime(), s.StartTime())
	}
}

// told is a Trace that a test calls as a pool does, in a bubble.
func told(t *testing.T) (b *bench, tr *mcppool.Trace, remembered func() int) {
	t.Helper()
	b = newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	return b, b.telemetry.Trace(), b.telemetry.Remembered
}

func TestAFailedSecondStartIsASpawnThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr, _ := told(t)
		from := mcppool.Origin{SessionID: "1"}
		tr.ConnectBegin(t.Context(), mcppool.ConnectBeginInfo{Origin: from})
		time.Sleep(time.Second)
		tr.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: 11})
		time.Sleep(time.Second)
		tr.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from,
			Took: 2 * time.Second, Err: &mcppool.StartError{Phase: "start", Err: errors.New("no more processes")},
		})
		lines, _ := b.below(b.one(t, "mcppool.connect"))
		require.Equal(t, []string{
			"mcppool.spawn 11", "mcppool.handshake 11 restarted", "mcppool.spawn start_failed",
		}, lines)
	})
}

func TestAConnectThatIsGivenUpShowsHowFarItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr, remembered := told(t)
		from := mcppool.Origin{SessionID: "1"}
		tr.ConnectBegin(t.Context(), mcppool.ConnectBeginInfo{Origin: from})
		tr.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: 11})
		tr.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from, Err: context.Canceled})
		lines, _ := b.below(b.one(t, "mcppool.connect"))
		require.Equal(t, []string{"mcppool.spawn 11", "mcppool.handshake 11 cancelled"}, lines)
		require.Zero(t, remembered())
	})
}

func TestAConnectWhosePartsAreNotToldHasNoneBelowIt(t *testing.T) {
	b := newBench(t, &fakes{}, mcppool.Options{}, mcppoolotel.Options{})
	require.NoError(t, b.call(t.Context(), stdio, "open"))
	require.NoError(t, b.call(t.Context(), mcppool.Server{URL: "http://host/"}, "open"))
	require.Len(t, b.named("mcppool.connect"), 2)
	require.Empty(t, b.named("mcppool.spawn"))
	require.Empty(t, b.named("mcppool.handshake"))
}

func TestConnectsAtOnceAreKeptApart(t *testing.T) {
	b, tr, remembered := told(t)
	const many = 100
	var wg sync.WaitGroup
	for i := 1; i <= many; i++ {
		wg.Go(func() {
			from := mcppool.Origin{SessionID: strconv.Itoa(i)}
			tr.ConnectBegin(t.Context(), mcppool.ConnectBeginInfo{Origin: from})
			tr.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: i})
			tr.ProcessStarted(t.Context(), mcppool.ProcessStartedInfo{Origin: from, PID: many + i})
			tr.ConnectEnd(t.Context(), mcppool.ConnectEndInfo{Origin: from})
			tr.SessionClosed(t.Context(), mcppool.SessionClosedInfo{Origin: from, Reason: mcppool.ReasonOneShot, Lived: time.Second})
		})
	}
	wg.Wait()
	connects := b.named("mcppool.connect")
	require.Len(t, connects, many)
	for _, connect := range connects {
		i, err := strconv.Atoi(attrs(connect)["mcp.session.id"].(string))
		require.NoError(t, err)
		lines, _ := b.below(connect)
		require.Equal(t, []string{
			fmt.Sprint("mcppool.spawn ", i), fmt.Sprint("mcppool.handshake ", i, " restarted"),
			fmt.Sprint("mcppool.spawn ", many+i), fmt.Sprint("mcppool.handshake ", many+i),
		}, lines)
	}
	require.Zero(t, remembered())
}

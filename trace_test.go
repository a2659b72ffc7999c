package mcppool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// tracer writes down what it is told, a line for each event.
type tracer struct {
	mu    sync.Mutex
	lines []string
}

func (tr *tracer) addf(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

// take gives the lines since the last time.
func (tr *tracer) take() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := tr.lines
	tr.lines = nil
	return lines
}

func (tr *tracer) trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitBegin:    func(_ context.Context, i mcppool.WaitBeginInfo) { tr.addf("wait %s", i.For) },
		WaitEnd:      func(_ context.Context, i mcppool.WaitEndInfo) { tr.addf("waited %s %s %v", i.For, i.Took, i.Err) },
		ConnectBegin: func(_ context.Context, i mcppool.ConnectBeginInfo) { tr.addf("connect %s", i.Scope) },
		ConnectEnd:   func(_ context.Context, i mcppool.ConnectEndInfo) { tr.addf("connected %s %v", i.Took, i.Err) },
		CallBegin:    func(_ context.Context, i mcppool.CallBeginInfo) { tr.addf("call %s", i.Tool) },
		CallEnd:      func(_ context.Context, i mcppool.CallEndInfo) { tr.addf("called %s %s", i.Took, i.Outcome) },
		SessionOpened: func(_ context.Context, i mcppool.SessionOpenedInfo) {
			tr.addf("opened %v", i.Spare)
		},
		SessionClosed: func(_ context.Context, i mcppool.SessionClosedInfo) {
			tr.addf("closed %s %s", i.Reason, i.Lived)
		},
		BackoffChanged: func(_ context.Context, i mcppool.BackoffChangedInfo) {
			tr.addf("backoff %s %v", i.State, i.Pause > 0)
		},
	}
}

func TestTraceTellsTheStoryOfEachWayACallCanGo(t *testing.T) {
	slow := slowCalls(time.Second)
	for name, tc := range map[string]struct {
		f     *fakes
		opts  mcppool.Options
		play  func(t *testing.T, p *mcppool.Pool, f *fakes)
		story []string
	}{
		"cold, then warm": {&fakes{connectTime: time.Second, call: slow}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			require.NoError(t, call(t.Context(), p, stdio, "s"))
		}, []string{
			"wait connect", "connect s", "opened false", "connected 1s <nil>", "waited connect 1s <nil>", "call t", "called 1s ok",
			"call t", "called 1s ok",
		}},
		"one-shot": {&fakes{}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			require.NoError(t, call(t.Context(), p, stdio, ""))
		}, []string{
			"wait connect", "connect ", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t", "called 0s ok",
			"closed one-shot 0s",
		}},
		"turn": {&fakes{call: slow}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			first := after(func() error { return call(t.Context(), p, stdio, "s") })
			synctest.Wait()
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			require.NoError(t, <-first)
		}, []string{
			"wait connect", "connect s", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t",
			"wait turn", "called 1s ok", "waited turn 1s <nil>", "call t", "called 1s ok",
		}},
		"limit": {&fakes{call: slow}, mcppool.Options{Limits: mcppool.Limits{MaxProcesses: 1}}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			first := after(func() error { return call(t.Context(), p, stdio, "a") })
			synctest.Wait()
			require.NoError(t, <-first)
			second := after(func() error { return call(t.Context(), p, stdio, "b") })
			require.NoError(t, <-second)
		}, []string{
			"wait connect", "connect a", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t", "called 1s ok",
			"wait limit", "closed evicted 1s", "waited limit 0s <nil>", "wait connect", "connect b", "opened false", "connected 0s <nil>",
			"waited connect 0s <nil>", "call t", "called 1s ok",
		}},
		"timeout": {&fakes{call: slow}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			require.Error(t, call(within(t, time.Second/2), p, stdio, "s"))
		}, []string{
			"wait connect", "connect s", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t", "called 500ms timeout",
			"closed timeout 500ms",
		}},
		"start failed": {&fakes{connectErr: errors.New("broken")}, mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}}, func(t *testing.T, p *mcppool.Pool, f *fakes) {
			t.Helper()
			require.Error(t, call(t.Context(), p, stdio, "s"))
			synctest.Wait()
			f.connectErr = nil
			time.Sleep(time.Second)
			require.NoError(t, call(t.Context(), p, stdio, "s"))
			time.Sleep(time.Minute)
			require.NoError(t, call(t.Context(), p, stdio, "other"))
		}, []string{
			"wait connect", "connect s", "connected 0s broken", "backoff waiting true", "waited connect 0s broken",
			"wait connect", "backoff trying false", "connect s", "opened false", "connected 0s <nil>", "waited connect 0s <nil>",
			"call t", "called 0s ok",
			"wait connect", "backoff over false", "connect other", "opened false", "connected 0s <nil>", "waited connect 0s <nil>",
			"call t", "called 0s ok",
		}},
		"crash": {&fakes{call: func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c.die()
			return nil, errors.New("EOF")
		}}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			require.Error(t, call(t.Context(), p, stdio, "s"))
		}, []string{
			"wait connect", "connect s", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t", "called 0s lost",
			"closed crashed 0s",
		}},
		"spare": {&fakes{}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			require.NoError(t, p.Prewarm(t.Context(), stdio, 1))
			require.NoError(t, call(t.Context(), p, stdio, "s"))
		}, []string{"connect ", "opened true", "connected 0s <nil>", "call t", "called 0s ok"}},
		"closed": {&fakes{call: slow}, mcppool.Options{}, func(t *testing.T, p *mcppool.Pool, _ *fakes) {
			t.Helper()
			c := after(func() error { return call(t.Context(), p, stdio, "s") })
			synctest.Wait()
			p.CloseScope("s")
			require.Error(t, <-c)
		}, []string{
			"wait connect", "connect s", "opened false", "connected 0s <nil>", "waited connect 0s <nil>", "call t",
			"called 0s closed", "closed scope closed 0s",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tr tracer
				tc.opts.Trace = tr.trace()
				p := newPool(t, tc.f, &tc.opts)
				tc.play(t, p, tc.f)
				synctest.Wait()
				var story []string
				for _, line := range tr.take() {
					if i := strings.Index(line, "mcppool: server-"); i >= 0 {
						line = line[:i] + "broken" // whatever else a StartError says
					}
					story = append(story, line)
				}
				if tc.f.connectTime == 0 { // the connect may end before the caller waits for it
					story, tc.story = without("connect", story), without("connect", tc.story)
				}
				// What two goroutines do at the same moment may be told in either order.
				require.ElementsMatch(t, tc.story, story, "%q", story)
				require.Equal(t, only("call", tc.story), only("call", story))
				require.Equal(t, only("connect", tc.story), only("connect", story))
			})
		})
	}
}

// only keeps the lines that begin with a word, in its forms.
func only(word string, lines []string) (kept []string) {
	for _, l := range lines {
		if strings.HasPrefix(l, word) {
			kept = append(kept, l)
		}
	}
	return kept
}

func TestASessionIsToldAsClosedAfterItsOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr tracer
		told := tr.trace()
		hold := make(chan struct{})
		opened := told.SessionOpened
		told.SessionOpened = func(ctx context.Context, i mcppool.SessionOpenedInfo) { <-hold; opened(ctx, i) }
		p := newPool(t, &fakes{}, &mcppool.Options{Trace: told})
		c := after(func() error { return call(t.Context(), p, stdio, "s") })
		synctest.Wait()
		p.CloseScope("s") // the session is live, but nobody has been told
		synctest.Wait()
		close(hold)
		require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
		require.NoError(t, p.Close())
		require.Equal(t, []string{
			"connect s", "opened false", "connected 0s <nil>", "closed scope closed 0s",
		}, slices.DeleteFunc(tr.take(), func(l string) bool { return strings.HasPrefix(l, "wait") }))
	})
}

// without leaves out the waits for something.
func without(what string, lines []string) (kept []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, "wait "+what) && !strings.HasPrefix(l, "waited "+what) {
			kept = append(kept, l)
		}
	}
	return kept
}

func TestMergedTracesAreToldInTurn(t *testing.T) {
	var a, b tracer
	p := newPool(t, &fakes{}, &mcppool.Options{Trace: mcppool.MergeTraces(a.trace(), nil, b.trace())})
	require.NoError(t, call(t.Context(), p, stdio, "s"))
	require.NoError(t, p.Close())
	require.NotEmpty(t, a.lines)
	require.ElementsMatch(t, a.lines, b.lines)
	require.Nil(t, mcppool.MergeTraces().CallEnd)
}

func TestTraceMayCallThePool(t *testing.T) {
	var p *mcppool.Pool
	look := func() {
		p.Stats()
		for range p.Sessions() {
		}
		p.CloseIdle(time.Hour)
	}
	p = newPool(t, &fakes{}, &mcppool.Options{Trace: &mcppool.Trace{
		WaitBegin:     func(context.Context, mcppool.WaitBeginInfo) { look() },
		ConnectBegin:  func(context.Context, mcppool.ConnectBeginInfo) { look() },
		CallBegin:     func(context.Context, mcppool.CallBeginInfo) { look() },
		CallEnd:       func(context.Context, mcppool.CallEndInfo) { look() },
		SessionOpened: func(context.Context, mcppool.SessionOpenedInfo) { look() },
		SessionClosed: func(context.Context, mcppool.SessionClosedInfo) { look() },
	}})
	require.NoError(t, call(t.Context(), p, stdio, "s"))
}

func TestSessionsShowWhatTheyAreBusyWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{call: slowCalls(time.Minute)}
		p := newPool(t, f, nil)
		require.Error(t, call(within(t, time.Second), p, withProbe(stdio), "s"))
		c := after(func() error { return call(t.Context(), p, withProbe(stdio), "s") })
		synctest.Wait()
		begun := time.Now()
		time.Sleep(time.Second)
		n := 0
		for s := range p.SessionsOf("s") {
			n++
			require.Equal(t, "t", s.Tool)
			require.Equal(t, begun.Round(0), s.ToolSince)
			require.Contains(t, s.LastError, "deadline")
			require.True(t, strings.HasPrefix(s.Scope, "scope-"), s.Scope)
			require.True(t, p.CloseSession(s.ID))
			require.False(t, p.CloseSession(s.ID))
		}
		require.Equal(t, 1, n)
		require.ErrorIs(t, <-c, mcppool.ErrServerClosed)
		for range p.SessionsOf("other") {
			t.Error("another scope's session")
		}
	})
}

func withProbe(srv mcppool.Server) mcppool.Server {
	srv.Policy.AfterAbandon = mcppool.AbandonProbe
	return srv
}

func TestCallsAreCountedByHowTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := newPool(t, f, nil)
		ends := []struct {
			how mcppool.Outcome
			do  func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error)
		}{
			{mcppool.OutcomeOK, nil},
			{mcppool.OutcomeToolError, func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultError("no"), nil
			}},
			{mcppool.OutcomeRPCError, func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &mcppool.RPCError{Code: 1}
			}},
			{mcppool.OutcomeTimeout, slowCalls(time.Hour)},
			{mcppool.OutcomeLost, func(_ context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				c.die()
				return nil, errors.New("EOF")
			}},
			{mcppool.OutcomeClosed, func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				p.CloseServer(stdio)
				return nil, c.sleep(ctx, time.Hour)
			}},
			{mcppool.OutcomeOther, func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, errors.New("odd")
			}},
		}
		for _, e := range ends {
			f.call = e.do
			_ = call(within(t, time.Second), p, stdio, "s")
			require.EqualValues(t, 1, p.Stats().Outcomes[e.how], e.how)
		}
		f.connectErr = errors.New("broken")
		require.Error(t, call(t.Context(), p, other(1), "s"))
		s := p.Stats()
		require.EqualValues(t, 1, s.Outcomes[mcppool.OutcomeNotSent])
		require.EqualValues(t, len(ends)+1, s.Calls)
		var closed uint64
		for _, n := range s.Closed {
			closed += n
		}
		require.Equal(t, s.Connects, s.Opened+s.Failures)
		require.Equal(t, s.Connects, uint64(s.Open)+closed)
	})
}

func TestTraceTellsWhatAServerWritesBesidesMessages(t *testing.T) {
	var tr tracer
	p := realPool(t, &mcppool.Options{Trace: &mcppool.Trace{
		Junk: func(_ context.Context, i mcppool.JunkInfo) {
			tr.addf("junk %s %d %d %s", i.Scope, i.Total, len(i.Line), strings.TrimLeft(i.Line[len("no message: "):], "-"))
		},
		Stderr: func(_ context.Context, i mcppool.StderrInfo) { tr.addf("stderr %s %s", i.Scope, i.Line) },
	}})
	srv := real(t, "leaky", "TOKEN", secret("env"))
	srv.Protocol = mcppool.ProtocolLegacy
	_, err := p.CallTool(t.Context(), srv, mcppool.Call{Tool: "tell", Scope: "s"})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	lines := tr.take()
	junk := only("junk", lines)
	require.Len(t, junk, 1)
	require.True(t, strings.HasPrefix(junk[0], "junk s 1 "), junk[0])
	require.True(t, strings.HasSuffix(junk[0], " [redacted]"), junk[0])
	require.Contains(t, lines, "stderr s [redacted]")
}

func TestTraceTellsOfEachProcessAndOfTheIdOfEachRequest(t *testing.T) {
	var tr tracer
	var pid int
	var ids []int64
	trace := tr.trace()
	trace.ProcessStarted = func(_ context.Context, i mcppool.ProcessStartedInfo) {
		require.False(t, i.HTTP)
		pid = i.PID
		tr.addf("started for %s", i.Scope)
	}
	ended := trace.CallEnd
	trace.CallEnd = func(ctx context.Context, i mcppool.CallEndInfo) {
		ids = append(ids, i.RequestID)
		ended(ctx, i)
	}
	p := realPool(t, &mcppool.Options{Trace: trace})
	srv := real(t, "state")
	srv.Protocol = mcppool.ProtocolLegacy
	got := say(t, p, srv, "s", "pid", nil)
	require.Equal(t, strconv.Itoa(pid), got)
	told := tr.take()
	require.Less(t, slices.Index(told, "connect s"), slices.Index(told, "started for s"))
	require.Less(t, slices.Index(told, "started for s"), slices.Index(told, "opened false"))
	say(t, p, srv, "s", "pid", nil)
	require.Len(t, ids, 2)
	require.Positive(t, ids[0])
	require.Equal(t, ids[0]+1, ids[1])
}

// explosive is a Trace each of whose funcs calls boom with its name.
func explosive(boom func(name string)) *mcppool.Trace {
	tr := &mcppool.Trace{}
	v := reflect.ValueOf(tr).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			boom(name)
			return nil
		}))
	}
	return tr
}

func TestPanicOfAnObserverCostsNothing(t *testing.T) {
	hooks := reflect.TypeFor[mcppool.Trace]()
	for i := range hooks.NumField() {
		what := hooks.Field(i).Name
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				quiet := &mcppool.Trace{Panicked: func(_ context.Context, i mcppool.PanickedInfo) { said = append(said, i.Func+" "+i.Panic) }}
				f := &fakes{connectTime: time.Second}
				p := newPool(t, f, &mcppool.Options{
					Limits: mcppool.Limits{MaxProcesses: 1}, Backoff: mcppool.Backoff{Failures: 1},
					Trace: mcppool.MergeTraces(explosive(func(name string) {
						if name == what {
							panic(what)
						}
					}), quiet),
				})
				require.NoError(t, call(t.Context(), p, stdio, "s"))
				require.NoError(t, call(t.Context(), p, stdio, "s"))
				f.connectErr = errors.New("broken")
				require.Error(t, call(t.Context(), p, other(1), "s"))
				require.NoError(t, mcppool.CheckInvariants(p))
				require.NoError(t, p.Close())
				if slices.Contains([]string{"ProcessStarted", "SessionReplaced", "Junk", "Stderr", "Panicked"}, what) {
					return // these need a server of one's own
				}
				require.Contains(t, said, "Trace."+what+" a string")
			})
		})
	}
}

func TestALoggerThatPanicsCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakes{}, &mcppool.Options{Logger: slog.New(bomb{})})
		require.NoError(t, call(t.Context(), p, stdio, "s"))
		require.NoError(t, call(t.Context(), p, stdio, ""))
		require.NoError(t, p.Close())
	})
}

// bomb is a log handler that panics.
type bomb struct{}

func (bomb) Enabled(context.Context, slog.Level) bool  { panic("the log is broken") }
func (bomb) Handle(context.Context, slog.Record) error { panic("the log is broken") }
func (b bomb) WithAttrs([]slog.Attr) slog.Handler      { return b }
func (b bomb) WithGroup(string) slog.Handler           { return b }

package mcppoolprom_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolprom"
)

// fake is a server in memory. Its tools are called as what they do.
type fake struct{ done chan struct{} }

func (c *fake) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	switch req.Params.Name {
	case "fail":
		return mcp.NewToolResultError("no"), nil
	case "refuse":
		return nil, &mcppool.RPCError{Code: 1, Message: "no"}
	case "sleep":
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return mcp.NewToolResultText("ok"), nil
}

func (c *fake) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}
func (c *fake) Done() <-chan struct{} { return c.done }
func (c *fake) Err() error            { return nil }
func (c *fake) Close() error          { return nil }

// dial takes 20 ms, and fails for a server that is called "broken".
func dial(_ context.Context, srv mcppool.Server) (mcppool.Client, error) {
	time.Sleep(20 * time.Millisecond)
	if srv.Command == "broken" {
		return nil, errors.New("broken")
	}
	return &fake{make(chan struct{})}, nil
}

func newPool(t testing.TB, m *mcppoolprom.Metrics, opts mcppool.Options) *mcppool.Pool {
	t.Helper()
	opts.Dial = dial
	return newRealPool(t, m, opts)
}

// newRealPool is a pool that starts processes.
func newRealPool(t testing.TB, m *mcppoolprom.Metrics, opts mcppool.Options) *mcppool.Pool {
	t.Helper()
	opts.Trace = m.Trace()
	p, err := mcppool.New(&opts)
	require.NoError(t, err)
	m.Attach(p)
	t.Cleanup(func() { p.Close() })
	return p
}

func call(ctx context.Context, p *mcppool.Pool, command, scope, tool string) error {
	_, err := p.CallTool(ctx, mcppool.Server{Command: command}, mcppool.Call{Tool: tool, Scope: scope})
	return err
}

// live makes some of everything happen, in a bubble.
func live(t *testing.T, p *mcppool.Pool) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, call(ctx, p, "srv", "a", "ok"))
	require.NoError(t, call(ctx, p, "srv", "a", "ok"))
	require.NoError(t, call(ctx, p, "srv", "a", "fail"))
	require.Error(t, call(ctx, p, "srv", "a", "refuse"))
	require.NoError(t, call(ctx, p, "srv", "", "ok"))
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	require.Error(t, call(short, p, "srv", "b", "sleep"))
	require.Error(t, call(ctx, p, "broken", "a", "ok"))
	busy := make(chan error)
	go func() { busy <- call(ctx, p, "srv", "a", "sleep") }()
	synctest.Wait()
	require.NoError(t, call(ctx, p, "srv", "a", "ok"))
	require.NoError(t, <-busy)
	given, stop := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, stop)
	require.Error(t, call(given, p, "srv", "c", "ok"))
	synctest.Wait()
	time.Sleep(time.Second) // a stubborn connect ends
	synctest.Wait()
}

func TestMetricsAreThoseOfTheGoldenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(&mcppoolprom.Options{Buckets: []float64{.01, .1, 1}})
		live(t, newPool(t, m, mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}}))
		golden, err := os.Open("testdata/metrics.txt")
		require.NoError(t, err)
		defer golden.Close()
		require.NoError(t, testutil.CollectAndCompare(m, golden))
	})
}

func TestMetricsOfAPoolAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(nil)
		p := newPool(t, m, mcppool.Options{})
		live(t, p)
		sum := sums(t, m)
		require.Equal(t, sum["mcppool_connects_total"], sum["mcppool_sessions"]+sum["mcppool_sessions_closed_total"])
		require.EqualValues(t, p.Stats().Calls, sum["mcppool_calls_total"])
		// What never got a session has no duration.
		require.Equal(t, sum["mcppool_calls_total"], sum["mcppool_call_duration_seconds"]+2)
		require.Equal(t, sum["mcppool_connects_total"], sum["mcppool_connect_duration_seconds"])
	})
}

func TestEachGaugeShowsItsOwnNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(nil)
		p := newPool(t, m, mcppool.Options{Limits: mcppool.Limits{MaxPerScope: 3}})
		require.NoError(t, p.Prewarm(t.Context(), mcppool.Server{Command: "spare"}, 5))
		for _, scope := range []string{"a", "b", "c", "d"} {
			require.NoError(t, call(t.Context(), p, "srv", scope, "ok"))
		}
		ended := make(chan error)
		begin := func(command, scope string) {
			go func() { ended <- call(t.Context(), p, command, scope, "sleep") }()
			synctest.Wait()
		}
		// Three calls in a scope for three, and six that wait for a fourth.
		for _, command := range []string{"1", "2", "3", "4", "4", "4", "4", "4", "4"} {
			begin(command, "full")
		}
		time.Sleep(50 * time.Millisecond)
		begin("5", "e")
		begin("5", "f")
		s := p.Stats()
		want := map[string]int{
			"mcppool_sessions{queued}": s.Queued, "mcppool_sessions{connecting}": s.Connecting,
			"mcppool_sessions{live}": s.Live, "mcppool_sessions{closing}": s.Closing, "mcppool_kept_sessions": s.Kept,
			"mcppool_idle_sessions": s.Idle, "mcppool_borrowed_sessions": s.Borrowed, "mcppool_spare_sessions": s.Spares, "mcppool_processes": s.Processes,
			"mcppool_waiting_callers": s.Waiting,
		}
		differ := make(map[int]string)
		for name, n := range want {
			require.Empty(t, differ[n], "%s has the same number, %d", name, n)
			differ[n] = name
		}
		families, err := registry(t, m).Gather()
		require.NoError(t, err)
		got := make(map[string]int)
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				name := f.GetName()
				for _, l := range metric.GetLabel() {
					name += "{" + l.GetValue() + "}"
				}
				if metric.GetGauge() != nil {
					got[name] = int(metric.GetGauge().GetValue())
				}
			}
		}
		require.Equal(t, want, got)
		for range 11 {
			require.NoError(t, <-ended)
		}
	})
}

func TestTheBytesOfProcessesAreCounted(t *testing.T) {
	m := mcppoolprom.New(nil)
	p := newRealPool(t, m, mcppool.Options{})
	_, err := p.CallTool(t.Context(), telemetrytest.Child(t, telemetrytest.Raw), mcppool.Call{Tool: "tell", Scope: "s"})
	require.NoError(t, err)
	s, sum := p.Stats(), sums(t, m)
	require.Positive(t, s.BytesSent)
	require.Greater(t, s.BytesReceived, s.BytesSent)
	require.EqualValues(t, s.BytesSent, sum["mcppool_sent_bytes_total"])
	require.EqualValues(t, s.BytesReceived, sum["mcppool_received_bytes_total"])
}

// sums adds each metric up over its labels; of a histogram, the observations.
func sums(t *testing.T, m *mcppoolprom.Metrics) map[string]int {
	t.Helper()
	families, err := registry(t, m).Gather()
	require.NoError(t, err)
	sum := make(map[string]int)
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			sum[f.GetName()] += int(metric.GetGauge().GetValue() + metric.GetCounter().GetValue() +
				float64(metric.GetHistogram().GetSampleCount()))
		}
	}
	return sum
}

// registry is one that checks what is collected against what was described.
func registry(t testing.TB, m *mcppoolprom.Metrics) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	return r
}

func TestMetricsFollowTheConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(&mcppoolprom.Options{
			ConstLabels: prometheus.Labels{"pool": "main"},
		})
		live(t, newPool(t, m, mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}}))
		problems, err := testutil.GatherAndLint(registry(t, m))
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

func TestLabelsHoldNoScopeSessionOrTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(nil)
		p := newPool(t, m, mcppool.Options{Backoff: mcppool.Backoff{Failures: 1}})
		live(t, p)
		families, err := registry(t, m).Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				for _, l := range metric.GetLabel() {
					require.Contains(t, []string{"outcome", "reason", "server", "state", "what"}, l.GetName())
				}
			}
		}
	})
}

func TestServersBeyondTheBoundShareAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(&mcppoolprom.Options{
			MaxServers: 2,
		})
		p := newPool(t, m, mcppool.Options{})
		for _, command := range []string{"one", "two", "three", "four", "one", "bad\xffbytes"} {
			require.NoError(t, call(t.Context(), p, command, "s", "ok"))
		}
		require.Equal(t, map[string]uint64{"one": 2, "two": 1, mcppoolprom.OtherServers: 3}, callsByServer(t, m))
	})
}

func TestServerNameThatIsNoTextDoesNotBreakTheScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mcppoolprom.New(&mcppoolprom.Options{MaxServers: -1})
		require.NoError(t, call(t.Context(), newPool(t, m, mcppool.Options{}), "bad\xff", "s", "ok"))
		require.Equal(t, map[string]uint64{"bad�": 1}, callsByServer(t, m))
	})
}

func callsByServer(t *testing.T, m *mcppoolprom.Metrics) map[string]uint64 {
	t.Helper()
	families, err := registry(t, m).Gather()
	require.NoError(t, err)
	n := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != "mcppool_call_duration_seconds" {
			continue
		}
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if l.GetName() == "server" {
					n[l.GetValue()] += metric.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return n
}

func TestMetricsCanBeScrapedBeforeThereIsAPool(t *testing.T) {
	m := mcppoolprom.New(nil)
	require.Zero(t, testutil.CollectAndCount(m))
	p := newPool(t, m, mcppool.Options{})
	require.NotZero(t, testutil.CollectAndCount(m, "mcppool_sessions"))
	p.Close()
	require.NotZero(t, testutil.CollectAndCount(m, "mcppool_sessions"), "a closed pool still has its numbers")
}

func TestEveryReasonHasAZeroFromTheStart(t *testing.T) {
	m := mcppoolprom.New(nil)
	newPool(t, m, mcppool.Options{})
	families, err := registry(t, m).Gather()
	require.NoError(t, err)
	var reasons []string
	for _, f := range families {
		if f.GetName() == "mcppool_sessions_closed_total" {
			for _, metric := range f.GetMetric() {
				reasons = append(reasons, metric.GetLabel()[0].GetValue())
			}
		}
	}
	require.ElementsMatch(t, constants(t, "../closegen.go", "CloseReason"), reasons)
}

// constants are the values of a file's constants of a type.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				values = append(values, value)
			}
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}

func TestReadmeListsEveryMetric(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	var listed, there []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(mcppool_\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(readme), -1) {
		listed = append(listed, match[1]+" "+match[2])
	}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (.*)$`).FindAllStringSubmatch(string(golden), -1) {
		there = append(there, match[1])
	}
	require.NotEmpty(t, there)
	require.ElementsMatch(t, there, listed)
}

func BenchmarkCallEnd(b *testing.B) {
	end := mcppoolprom.New(nil).Trace().CallEnd
	info := mcppool.CallEndInfo{
		Origin: mcppool.Origin{Server: "srv-0123456789ab"}, Tool: "t", Took: time.Millisecond, Outcome: mcppool.OutcomeOK,
	}
	b.ReportAllocs()
	for b.Loop() {
		end(context.Background(), info)
	}
}

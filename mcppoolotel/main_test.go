package mcppoolotel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/telemetrytest"
	"github.com/mcppool/mcppool/mcppoolotel"
)

// mcpServer is a kind of server beside those of telemetrytest, made with mcp-go.
const mcpServer = "mcp"

func TestMain(m *testing.M) {
	switch kind := os.Getenv(telemetrytest.ServerEnv); kind {
	case "":
		goleak.VerifyTestMain(m)
	case mcpServer:
		serve()
	default:
		telemetrytest.Serve(kind)
	}
}

// serve is the process of a server, which says what _meta it got.
func serve() {
	s := server.NewMCPServer("real", "1.0")
	s.AddTool(mcp.NewTool("meta"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fields, err := json.Marshal(req.Params.Meta)
		return mcp.NewToolResultText(string(fields)), err
	})
	s.AddTool(mcp.NewTool("add"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.GetInt("a", 0) + req.GetInt("b", 0))), nil
	})
	s.AddTool(mcp.NewTool("die"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "dying with", os.Getenv("TOKEN"))
		os.Exit(7)
		return nil, nil
	})
	s.AddTool(mcp.NewTool("broken"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("broken with %s", os.Getenv("TOKEN"))
	})
	if err := server.ServeStdio(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var stdio = mcppool.Server{Command: "/opt/servers/browser"}

// fakes is a Dial whose servers live in memory.
type fakes struct {
	connectTime time.Duration
	connectErr  error
	protocol    string
	call        func(ctx context.Context, c *fake, req mcp.CallToolRequest) (*mcp.CallToolResult, error)

	mu   sync.Mutex
	sent []*mcp.Meta
}

type fake struct {
	f    *fakes
	once sync.Once
	done chan struct{}
}

func (f *fakes) dial(ctx context.Context, _ mcppool.Server) (mcppool.Client, error) {
	if f.connectTime > 0 {
		select {
		case <-time.After(f.connectTime):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.connectErr != nil {
		return nil, f.connectErr
	}
	return &fake{f: f, done: make(chan struct{})}, nil
}

func (c *fake) CallTool(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c.f.mu.Lock()
	c.f.sent = append(c.f.sent, req.Params.Meta)
	c.f.mu.Unlock()
	if c.f.call != nil {
		return c.f.call(ctx, c, req)
	}
	return mcp.NewToolResultText("fine"), nil
}

func (c *fake) ListTools(context.Context, mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return &mcp.ListToolsResult{}, nil
}

func (c *fake) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("not offered")
}

func (c *fake) Notify(context.Context, string, json.RawMessage) error { return nil }

func (c *fake) Info() *mcp.InitializeResult {
	return &mcp.InitializeResult{ProtocolVersion: c.f.protocol}
}

func (c *fake) Done() <-chan struct{} { return c.done }
func (c *fake) Err() error            { return errors.New("the process ended") }
func (c *fake) Close() error          { c.once.Do(func() { close(c.done) }); return nil }

// slowCalls take d, unless ctx or the connection ends before.
func slowCalls(d time.Duration) func(context.Context, *fake, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, c *fake, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(d):
			return mcp.NewToolResultText("slow"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, errors.New("EOF")
		}
	}
}

// bench is a pool with all that this module adds to it, and what came out.
type bench struct {
	pool      *mcppool.Pool
	tools     *mcppoolotel.Pool
	telemetry *mcppoolotel.Telemetry
	tracing   *sdktrace.TracerProvider
	spans     *tracetest.SpanRecorder
	reader    *sdkmetric.ManualReader
}

func newBench(t testing.TB, f *fakes, pool mcppool.Options, opts mcppoolotel.Options) *bench {
	t.Helper()
	b := &bench{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	b.tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	opts.TracerProvider = b.tracing
	opts.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))
	b.telemetry = mcppoolotel.New(&opts)
	t.Cleanup(func() { require.NoError(t, b.telemetry.Close()) })
	pool.Trace = b.telemetry.Trace()
	if f != nil {
		pool.Dial = f.dial
	}
	var err error
	b.pool, err = mcppool.New(&pool)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.pool.Close()) })
	b.tools = b.telemetry.Wrap(b.pool)
	return b
}

func (b *bench) call(ctx context.Context, srv mcppool.Server, tool string) error {
	_, err := b.tools.CallTool(ctx, srv, mcppool.Call{Tool: tool, Scope: "conversation 7"})
	return err
}

// named gives the ended spans of a name.
func (b *bench) named(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range b.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func (b *bench) one(t testing.TB, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	found := b.named(name)
	require.Len(t, found, 1, name)
	return found[0]
}

func (b *bench) collect(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, b.reader.Collect(context.Background(), &rm))
	all := make(map[string]metricdata.Metrics)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// points gives the attributes of a metric's points, as text, and their values:
// of a histogram the sums.
func points(m metricdata.Metrics) map[string]float64 {
	all := make(map[string]float64)
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Sum
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Value)
		}
	}
	return all
}

// attrs gives a span's attributes.
func attrs(s sdktrace.ReadOnlySpan) map[string]any {
	all := make(map[string]any)
	for _, kv := range s.Attributes() {
		all[string(kv.Key)] = kv.Value.AsInterface()
	}
	return all
}

// everything is all that went out, with its parts in the ways in which exporters
// write them.
func (b *bench) everything(t testing.TB) string {
	t.Helper()
	var all []any
	for _, s := range b.spans.Ended() {
		all = append(all, tracetest.SpanStubFromReadOnlySpan(s))
	}
	for _, m := range b.collect(t) {
		all = append(all, m, points(m))
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, one := range all {
		require.NoError(t, enc.Encode(one))
		fmt.Fprintf(&out, "%+v\n", one)
	}
	return out.String()
}

// Package mcppoolprom shows what a [mcppool.Pool] does as Prometheus metrics.
//
//	metrics := mcppoolprom.New(nil)
//	pool, err := mcppool.New(&mcppool.Options{Trace: metrics.Trace()})
//	...
//	metrics.Attach(pool)
//	prometheus.MustRegister(metrics)
//
// The README lists the metrics. Their labels are bounded: no scope, session or
// tool is among them, and of servers [Options.MaxServers] names.
package mcppoolprom

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcppool/mcppool"
)

// Options are the settings of [Metrics]. In every field zero is the default given
// with it. [New] copies them.
type Options struct {
	// ConstLabels are on every metric, for a process that has several pools;
	// default: none.
	ConstLabels prometheus.Labels
	// Buckets are the upper bounds of the histograms, in seconds and ascending;
	// default: [DefaultBuckets].
	Buckets []float64

	// MaxServers is how many names of servers get series of their own; those that
	// come later share the name [OtherServers]. Default 50, negative no limit.
	MaxServers int
}

// OtherServers is the label "server" of those beyond [Options.MaxServers].
const OtherServers = "other"

const defaultMaxServers = 50

// DefaultBuckets are the bounds of the histograms, in seconds: from a warm call
// of a millisecond to the pool's default ConnectTimeout and beyond.
func DefaultBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

// Metrics are one pool's metrics. They are a [prometheus.Collector], to be
// registered once. All methods may be called from any goroutine.
type Metrics struct {
	pool atomic.Pointer[mcppool.Pool]

	maxServers int
	serversMu  sync.Mutex // protects the field below
	servers    map[string]struct{}

	waits, connects, calls *prometheus.HistogramVec
	backoff                *prometheus.CounterVec

	sessions, kept, idle, borrowed, spares, processes, waiting *prometheus.Desc
	begun, opened, failures, closed, ended, sent, received     *prometheus.Desc
}

// New makes the metrics of a pool that is yet to be made: its Trace goes into
// [mcppool.Options], and the pool into [Metrics.Attach]. It panics if
// [Options.Buckets] aren't ascending; ConstLabels that are invalid are an error of
// the registry.
func New(opts *Options) *Metrics {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Buckets == nil {
		o.Buckets = DefaultBuckets()
	}
	if o.MaxServers == 0 {
		o.MaxServers = defaultMaxServers
	}
	m := &Metrics{maxServers: o.MaxServers, servers: make(map[string]struct{})}
	histogram := func(name, help, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: o.Buckets, ConstLabels: o.ConstLabels,
		}, []string{label, "server"})
	}
	desc := func(name, help string, label ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, label, o.ConstLabels)
	}
	m.waits = histogram("mcppool_wait_duration_seconds", "How long calls waited, by what for.", "what")
	m.connects = histogram("mcppool_connect_duration_seconds", "How long connects took, by how they ended.", "outcome")
	m.calls = histogram("mcppool_call_duration_seconds", "How long servers took for tool calls, by how they ended.", "outcome")
	m.backoff = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcppool_backoff_changes_total", ConstLabels: o.ConstLabels,
		Help: "How often a failing server was held off, tried or trusted again, by the new state.",
	}, []string{"state", "server"})

	m.sessions = desc("mcppool_sessions", "Sessions that are not closed, by state.", "state")
	m.kept = desc("mcppool_kept_sessions", "Sessions that calls can find.")
	m.idle = desc("mcppool_idle_sessions", "Kept sessions that nobody borrows.")
	m.borrowed = desc("mcppool_borrowed_sessions", "Connected sessions that somebody borrows.")
	m.spares = desc("mcppool_spare_sessions", "Connected sessions in hand for calls to come.")
	m.processes = desc("mcppool_processes", "Child processes that have not ended.")
	m.waiting = desc("mcppool_waiting_callers", "Callers that wait at a limit.")
	m.begun = desc("mcppool_connects_total", "Sessions begun.")
	m.opened = desc("mcppool_sessions_opened_total", "Sessions that connected.")
	m.failures = desc("mcppool_connect_failures_total", "Sessions that did not connect.")
	m.closed = desc("mcppool_sessions_closed_total", "Sessions ended, by reason.", "reason")
	m.ended = desc("mcppool_calls_total", "Tool calls that have ended, by how.", "outcome")
	m.sent = desc("mcppool_sent_bytes_total", "Bytes that went to child processes, on their stdin.")
	m.received = desc("mcppool_received_bytes_total", "Bytes that came from child processes, on their stdout.")
	return m
}

// Attach makes m show the numbers of pool, instead of those of the one before if
// there is any. Until then m has only what its Trace was told.
func (m *Metrics) Attach(pool *mcppool.Pool) { m.pool.Store(pool) }

// Trace feeds the histograms. It belongs in the Options of the pool that is to be
// attached; see [mcppool.MergeTraces] for more than one Trace.
func (m *Metrics) Trace() *mcppool.Trace {
	return &mcppool.Trace{
		WaitEnd: func(_ context.Context, i mcppool.WaitEndInfo) {
			m.observe(m.waits, string(i.For), i.Origin, i.Took)
		},
		ConnectEnd: func(_ context.Context, i mcppool.ConnectEndInfo) {
			m.observe(m.connects, connectOutcome(i.Err), i.Origin, i.Took)
		},
		CallEnd: func(_ context.Context, i mcppool.CallEndInfo) {
			m.observe(m.calls, string(i.Outcome), i.Origin, i.Took)
		},
		BackoffChanged: func(_ context.Context, i mcppool.BackoffChangedInfo) {
			m.backoff.WithLabelValues(string(i.State), m.server(i.Origin)).Inc()
		},
	}
}

func connectOutcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return "failed"
	}
}

func (m *Metrics) observe(h *prometheus.HistogramVec, first string, from mcppool.Origin, took time.Duration) {
	h.WithLabelValues(first, m.server(from)).Observe(took.Seconds())
}

// server is the label of what the Trace feeds.
func (m *Metrics) server(from mcppool.Origin) string {
	name := strings.ToValidUTF8(from.ServerName(), "�") // another value would panic
	m.serversMu.Lock()
	defer m.serversMu.Unlock()
	if _, known := m.servers[name]; !known {
		if m.maxServers >= 0 && len(m.servers) >= m.maxServers {
			return OtherServers
		}
		m.servers[name] = struct{}{}
	}
	return name
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.waits.Describe(ch)
	m.connects.Describe(ch)
	m.calls.Describe(ch)
	m.backoff.Describe(ch)
	for _, d := range []*prometheus.Desc{
		m.sessions, m.kept, m.idle, m.borrowed, m.spares, m.processes, m.waiting,
		m.begun, m.opened, m.failures, m.closed, m.ended, m.sent, m.received,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. What comes from [mcppool.Pool.Stats]
// is of one moment, so that it adds up.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.waits.Collect(ch)
	m.connects.Collect(ch)
	m.calls.Collect(ch)
	m.backoff.Collect(ch)
	pool := m.pool.Load()
	if pool == nil {
		return
	}
	s := pool.Stats()
	gauge := func(d *prometheus.Desc, v int, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), label...)
	}
	counter := func(d *prometheus.Desc, v uint64, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), label...)
	}
	gauge(m.sessions, s.Queued, "queued")
	gauge(m.sessions, s.Connecting, "connecting")
	gauge(m.sessions, s.Live, "live")
	gauge(m.sessions, s.Closing, "closing")
	gauge(m.kept, s.Kept)
	gauge(m.idle, s.Idle)
	gauge(m.borrowed, s.Borrowed)
	gauge(m.spares, s.Spares)
	gauge(m.processes, s.Processes)
	gauge(m.waiting, s.Waiting)
	counter(m.begun, s.Connects)
	counter(m.opened, s.Opened)
	counter(m.failures, s.Failures)
	counter(m.sent, uint64(s.BytesSent))
	counter(m.received, uint64(s.BytesReceived))
	for outcome, n := range s.Outcomes {
		counter(m.ended, n, string(outcome))
	}
	// A rate needs the zero before the first one.
	for _, why := range closeReasons {
		if _, counted := s.Closed[why]; !counted {
			counter(m.closed, 0, string(why))
		}
	}
	for why, n := range s.Closed {
		counter(m.closed, n, string(why))
	}
}

// closeReasons are all that the pool has.
var closeReasons = []mcppool.CloseReason{
	mcppool.ReasonOneShot, mcppool.ReasonIdle, mcppool.ReasonLRU, mcppool.ReasonTimeout, mcppool.ReasonCancelled,
	mcppool.ReasonCrashed, mcppool.ReasonServerClosed, mcppool.ReasonScopeClosed, mcppool.ReasonByID, mcppool.ReasonRetired,
	mcppool.ReasonShutdown, mcppool.ReasonEvicted, mcppool.ReasonRecycled, mcppool.ReasonWedged, mcppool.ReasonDiscarded,
	mcppool.ReasonLeaked, mcppool.ReasonStartFailed, mcppool.ReasonAbandoned, mcppool.ReasonPanicked,
}

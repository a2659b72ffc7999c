package mcppoolotel

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcppool/mcppool"
)

// Observed is what has numbers. A [mcppool.Pool] is one.
type Observed interface {
	Stats() mcppool.Stats
}

// Observe makes metrics of the pool's Stats, which are asked for once for each
// collection. Unregister what it gives when the pool is closed, which the metrics
// keep in memory otherwise. Pools that are observed with the same MeterProvider
// need different [Options.PoolName]s. It fails when the MeterProvider does, and
// then nothing is observed.
func Observe(pool Observed, opts *Options) (metric.Registration, error) {
	o := orDefaults(opts)
	meter := o.meter()
	var (
		all    []metric.Observable
		failed []error
	)
	gauge := func(name, unit, description string) metric.Int64Observable {
		g, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, failed = append(all, g), append(failed, err)
		return g
	}
	counter := func(name, unit, description string) metric.Int64Observable {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, failed = append(all, c), append(failed, err)
		return c
	}
	sessions := gauge("mcppool.session.count", "{session}", "Sessions that aren't closed, by state.")
	idle := gauge("mcppool.session.idle.count", "{session}", "Sessions that are kept and that nobody uses.")
	borrowed := gauge("mcppool.session.borrowed.count", "{session}", "Connected sessions that somebody uses.")
	spares := gauge("mcppool.session.spare.count", "{session}", "Connected sessions in hand.")
	processes := gauge("mcppool.process.count", "{process}", "Child processes that were started and haven't ended.")
	waiting := gauge("mcppool.waiting.count", "{call}", "Calls that wait at a limit.")
	opened := counter("mcppool.session.opened", "{session}", "Sessions that connected.")
	refused := counter("mcppool.session.failed", "{session}", "Sessions that didn't connect.")
	closed := counter("mcppool.session.closed", "{session}", "Sessions that ended, by reason.")
	sent := counter("mcppool.process.sent", "By", "Bytes that went to child processes, on their stdin.")
	received := counter("mcppool.process.received", "By", "Bytes that came from child processes, on their stdout.")
	calls := counter("mcppool.call.ended", "{call}", "Tool calls that ended, by outcome, those that were never sent included.")
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	common := o.common()
	with := func(key attribute.Key, value string) metric.ObserveOption {
		return metric.WithAttributes(append(slices.Clone(common), key.String(value))...)
	}
	plain := metric.WithAttributes(common...)
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := pool.Stats()
		to.ObserveInt64(sessions, int64(s.Queued), with(keyState, "queued"))
		to.ObserveInt64(sessions, int64(s.Connecting), with(keyState, "connecting"))
		to.ObserveInt64(sessions, int64(s.Live), with(keyState, "live"))
		to.ObserveInt64(sessions, int64(s.Closing), with(keyState, "closing"))
		to.ObserveInt64(idle, int64(s.Idle), plain)
		to.ObserveInt64(borrowed, int64(s.Borrowed), plain)
		to.ObserveInt64(spares, int64(s.Spares), plain)
		to.ObserveInt64(processes, int64(s.Processes), plain)
		to.ObserveInt64(waiting, int64(s.Waiting), plain)
		to.ObserveInt64(opened, int64(s.Opened), plain)
		to.ObserveInt64(refused, int64(s.Failures), plain)
		to.ObserveInt64(sent, s.BytesSent, plain)
		to.ObserveInt64(received, s.BytesReceived, plain)
		for why, n := range s.Closed {
			to.ObserveInt64(closed, int64(n), with(keyReason, string(why)))
		}
		for how, n := range s.Outcomes {
			to.ObserveInt64(calls, int64(n), with(keyOutcome, string(how)))
		}
		return nil
	}, all...)
}

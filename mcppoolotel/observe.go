package mcppoolotel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcppool/mcppool"
)

// Attach makes t show the numbers of pool, in place of those of the one before if
// there is any, each time that metrics are collected; nil shows none, and lets go of
// the pool.
func (t *Telemetry) Attach(pool *mcppool.Pool) { t.pool.Store(pool) }

// Close ends what [Telemetry.Attach] began.
func (t *Telemetry) Close() error {
	t.pool.Store(nil)
	if t.observing == nil {
		return nil
	}
	return t.observing.Unregister()
}

// numbers are the instruments of a pool's Stats.
type numbers struct {
	sessions, idle, borrowed, spares, processes, waiting metric.Int64Observable
	opened, refused, closed, sent, received, calls       metric.Int64Observable
	all                                                  []metric.Observable
}

func (n *numbers) gauge(meter metric.Meter, name, unit, description string) metric.Int64Observable {
	g, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return n.add(g, err)
}

func (n *numbers) counter(meter metric.Meter, name, unit, description string) metric.Int64Observable {
	c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return n.add(c, err)
}

func (n *numbers) add(i metric.Int64Observable, err error) metric.Int64Observable {
	if err != nil {
		otel.Handle(err)
	}
	n.all = append(n.all, i)
	return i
}

// observe has the attached pool's numbers shown.
func (t *Telemetry) observe(meter metric.Meter) {
	n := &numbers{}
	n.sessions = n.gauge(meter, "mcppool.session.count", "{session}", "Sessions that aren't closed, by state.")
	n.idle = n.gauge(meter, "mcppool.session.idle.count", "{session}", "Sessions that are kept and that nobody uses.")
	n.borrowed = n.gauge(meter, "mcppool.session.borrowed.count", "{session}", "Connected sessions that somebody uses.")
	n.spares = n.gauge(meter, "mcppool.session.spare.count", "{session}", "Connected sessions in hand.")
	n.processes = n.gauge(meter, "mcppool.process.count", "{process}", "Child processes that were started and haven't ended.")
	n.waiting = n.gauge(meter, "mcppool.waiting.count", "{call}", "Calls that wait at a limit.")
	n.opened = n.counter(meter, "mcppool.session.opened", "{session}", "Sessions that connected.")
	n.refused = n.counter(meter, "mcppool.session.failed", "{session}", "Sessions that didn't connect.")
	n.closed = n.counter(meter, "mcppool.session.closed", "{session}", "Sessions that ended, by reason.")
	n.sent = n.counter(meter, "mcppool.process.sent", "By", "Bytes that went to child processes, on their stdin.")
	n.received = n.counter(meter, "mcppool.process.received", "By", "Bytes that came from child processes, on their stdout.")
	n.calls = n.counter(meter, "mcppool.call.ended", "{call}", "Tool calls that ended, by outcome, those that were never sent included.")
	var err error
	t.observing, err = meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		if pool := t.pool.Load(); pool != nil {
			n.show(to, pool.Stats(), t.common)
		}
		return nil
	}, n.all...)
	if err != nil {
		otel.Handle(err)
	}
}

func (n *numbers) show(to metric.Observer, s mcppool.Stats, common []attribute.KeyValue) {
	with := func(key attribute.Key, value string) metric.ObserveOption {
		return metric.WithAttributes(append(slices.Clone(common), key.String(value))...)
	}
	plain := metric.WithAttributes(common...)
	to.ObserveInt64(n.sessions, int64(s.Queued), with(keyState, "queued"))
	to.ObserveInt64(n.sessions, int64(s.Connecting), with(keyState, "connecting"))
	to.ObserveInt64(n.sessions, int64(s.Live), with(keyState, "live"))
	to.ObserveInt64(n.sessions, int64(s.Closing), with(keyState, "closing"))
	to.ObserveInt64(n.idle, int64(s.Idle), plain)
	to.ObserveInt64(n.borrowed, int64(s.Borrowed), plain)
	to.ObserveInt64(n.spares, int64(s.Spares), plain)
	to.ObserveInt64(n.processes, int64(s.Processes), plain)
	to.ObserveInt64(n.waiting, int64(s.Waiting), plain)
	to.ObserveInt64(n.opened, int64(s.Opened), plain)
	to.ObserveInt64(n.refused, int64(s.Failures), plain)
	to.ObserveInt64(n.sent, s.BytesSent, plain)
	to.ObserveInt64(n.received, s.BytesReceived, plain)
	for why, count := range s.Closed {
		to.ObserveInt64(n.closed, int64(count), with(keyReason, string(why)))
	}
	for how, count := range s.Outcomes {
		to.ObserveInt64(n.calls, int64(count), with(keyOutcome, string(how)))
	}
}

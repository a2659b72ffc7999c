package natsdir

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcppool/mcppool/cluster"
)

// ErrInterrupted is why a watch ended: the server was silent, or events were lost.
var ErrInterrupted = errors.New("natsdir: the watch was interrupted")

var errClosed = fmt.Errorf("natsdir: the directory is closed: %w", nats.ErrConnectionClosed)

// Watch implements [cluster.Directory]. It is a consumer of its own, of the stream's last
// message of each subject and what follows, that is never mended: a lost connection, a missing message
// or a server that doesn't send its heartbeat ends the watch.
func (d *Directory) Watch(ctx context.Context, b cluster.Bucket, f func(cluster.Event)) error {
	prefix, err := d.place(b, "all", nil)
	if err != nil {
		return err
	}
	prefix = strings.TrimSuffix(prefix, "all")
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return errClosed
	}
	d.watches.Add(1)
	d.mu.Unlock()
	defer d.watches.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	broken := d.nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	done := make(chan struct{})
	defer func() {
		cancel(nil)
		d.nc.RemoveStatusListener(broken)
		<-done
	}()
	go func() {
		defer close(done)
		select {
		case <-broken:
			cancel(fmt.Errorf("%w: the connection was lost", ErrInterrupted))
		case <-ctx.Done():
		}
	}()

	sub, err := d.nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		return d.watchEnd(ctx, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	// Nothing is dropped for being slow here: what is kept for each key is small.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return d.watchEnd(ctx, err)
	}
	w := watch{d: d, sub: sub, prefix: prefix, f: f}
	return d.watchEnd(ctx, w.run(ctx))
}

// watchEnd says why a watch ended: the caller's ctx, a broken connection, or err.
func (d *Directory) watchEnd(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if d.nc.IsClosed() {
		return errClosed
	}
	if denied := d.deniedBy(); denied != nil {
		return fmt.Errorf("natsdir: watching: %w", explain(denied))
	}
	return err
}

// watch is one watch of a bucket. It belongs to one goroutine.
type watch struct {
	d      *Directory
	sub    *nats.Subscription
	prefix string
	f      func(cluster.Event)

	received uint64 // messages
	initial  uint64 // of them before the watch is in step
	synced   bool
}

func (w *watch) run(ctx context.Context) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	for {
		if w.received >= w.initial {
			w.sync()
		}
		msg, err := w.next(ctx)
		if err != nil {
			return err
		}
		if status := msg.Header.Get("Status"); status != "" {
			if err := w.heartbeat(msg); err != nil {
				return err
			}
			continue
		}
		if err := w.message(msg); err != nil {
			return err
		}
	}
}

// begin makes the consumer. It goes away by itself when nobody listens any more.
func (w *watch) begin(ctx context.Context) error {
	beat := w.d.opts.timeout()
	return w.d.orMadeAnew(ctx, func(ctx context.Context) error {
		c, err := w.d.js.CreatePushConsumer(ctx, streamName(w.d.opts.bucket()), jetstream.ConsumerConfig{
			DeliverSubject:    w.sub.Subject,
			DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
			FilterSubject:     w.prefix + "*",
			AckPolicy:         jetstream.AckNonePolicy,
			IdleHeartbeat:     beat,
			InactiveThreshold: tries * 2 * beat,
			MemoryStorage:     true,
			Replicas:          1,
		})
		if err != nil {
			return err
		}
		w.initial = c.CachedInfo().NumPending + c.CachedInfo().Delivered.Consumer
		return nil
	})
}

// next waits for a message. A server that lives sends a heartbeat each time its timeout
// has passed in silence.
func (w *watch) next(ctx context.Context) (*nats.Msg, error) {
	bound, cancel := context.WithTimeout(ctx, tries*w.d.opts.timeout())
	defer cancel()
	msg, err := w.sub.NextMsgWithContext(bound)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: nothing was heard of the server for %v: %w", ErrInterrupted, tries*w.d.opts.timeout(), err)
	}
	return msg, err
}

// heartbeat compares what the server has sent with what has come.
func (w *watch) heartbeat(msg *nats.Msg) error {
	sent, err := strconv.ParseUint(msg.Header.Get("Nats-Last-Consumer"), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: a heartbeat of status %s", ErrInterrupted, msg.Header.Get("Status"))
	}
	if sent > w.received {
		return fmt.Errorf("%w: %d events are missing", ErrInterrupted, sent-w.received)
	}
	w.sync() // the server has nothing to send
	return nil
}

func (w *watch) sync() {
	if !w.synced {
		w.synced = true
		w.f(cluster.Event{Kind: cluster.Synced})
	}
}

func (w *watch) message(msg *nats.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	if w.received++; meta.Sequence.Consumer != w.received {
		return fmt.Errorf("%w: event %d came in the place of %d", ErrInterrupted, meta.Sequence.Consumer, w.received)
	}
	rec := cluster.Record{Key: strings.TrimPrefix(msg.Subject, w.prefix)}
	switch {
	case !isDeletion(msg.Header):
		rec.Value, rec.Revision = msg.Data, meta.Sequence.Stream
		w.f(cluster.Event{Kind: cluster.Written, Record: rec})
	case w.synced:
		w.f(cluster.Event{Kind: cluster.Deleted, Record: rec})
	}
	if meta.NumPending == 0 {
		w.sync()
	}
	return nil
}

var _ cluster.Directory = (*Directory)(nil)

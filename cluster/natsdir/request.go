package natsdir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// repeat calls f, which must be a read, until it is answered: up to three times, each with
// a timeout of its own. A request that is on its way to a server that dies is never
// answered, and a stream has no leader for some seconds when that one died.
func (d *Directory) repeat(ctx context.Context, f func(context.Context) error) error {
	for try := 1; ; try++ {
		err := d.bounded(ctx, f)
		if err == nil || try == tries || !mayPass(err) || ctx.Err() != nil || d.nc.IsClosed() {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) && !sleep(ctx, reconnectWait) {
			return err
		}
	}
}

func (d *Directory) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.opts.timeout())
	defer cancel()
	return f(ctx)
}

// mayPass reports whether err is one of a server, or a way to it, that is gone for now.
func mayPass(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		if api.ErrorCode == jetstream.JSErrCodeStreamNotFound {
			return true // a server that has just started may not have it yet
		}
		return api.Code >= 500 && api.ErrorCode != errCodeTooManyReplicas &&
			api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabledForAccount
	}
	return !errors.Is(err, nats.ErrAuthorization) && !errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// failed says what was tried, and why it didn't work if the server has said so.
func (d *Directory) failed(doing string, err error) error {
	if denied := d.deniedBy(); denied != nil {
		return fmt.Errorf("natsdir: %s a record: %w", doing, explain(denied))
	}
	return fmt.Errorf("natsdir: %s a record: %w", doing, err)
}

// Age implements [cluster.Directory], by the server's clock.
func (d *Directory) Age(ctx context.Context) (time.Duration, error) {
	info, err := d.info(ctx)
	if err != nil {
		return 0, fmt.Errorf("natsdir: asking about the bucket: %w", explain(err))
	}
	return max(info.TimeStamp.Sub(info.Created), 0), nil
}

// MinTTL is the shortest TTL of leases that makes sense with this store: the nodes of a
// NATS cluster take 4 to 9 s to elect a leader when one is lost, and all replicas would
// lose their leases meanwhile.
func (d *Directory) MinTTL() time.Duration {
	if d.opts.replicas() > 1 {
		return 10 * time.Second
	}
	return 0
}

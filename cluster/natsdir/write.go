package natsdir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// intent is a write that is to be done.
type intent struct {
	subject  string
	value    []byte
	expected uint64 // the revision that the subject must have; 0: nothing at all
	refused  error  // what it means that it has another
	create   bool   // a deletion is as good as nothing
	deletion bool
}

// write does in, at most once.
//
// A refusal is looked into, since a replicated stream also refuses a write while another
// one of the same subject is on its way, which may come to nothing: only a record that does
// differ is a refusal. When the answer got lost, the record tells by the write's name
// whether it was done; where it doesn't, the outcome stays unknown, and nothing is
// repeated.
func (d *Directory) write(ctx context.Context, in intent) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*tries*d.opts.timeout())
	defer cancel()
	name := rand.Text()
	wait := retryWait
	for {
		revision, err := d.publish(ctx, &in, name)
		if err == nil {
			return revision, nil
		}
		unknown := !isRefusal(err)
		if unknown && neverLeft(err) {
			return 0, d.failed("writing", err)
		}
		now, readErr := d.last(ctx, in.subject)
		switch {
		case readErr != nil:
			return 0, d.failed("writing", fmt.Errorf("%w; reading it back: %w", err, readErr))
		case now.write == name:
			return now.revision, nil
		case unknown:
			return 0, d.failed("writing", err)
		case in.create && now.deleted && now.revision != in.expected:
			in.expected = now.revision
		case now.revision != in.expected:
			return 0, in.refused
		default: // refused, though the record is as expected
			if !sleep(ctx, wait) {
				return 0, d.failed("writing", err)
			}
			wait *= 2
		}
	}
}

// publish sends in and returns the revision that it got.
func (d *Directory) publish(ctx context.Context, in *intent, name string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.timeout())
	defer cancel()
	msg := nats.NewMsg(in.subject)
	msg.Data = in.value
	msg.Header.Set(headerExpected, strconv.FormatUint(in.expected, 10))
	msg.Header.Set(headerWrite, name)
	if in.deletion {
		msg.Header.Set(headerOperation, operationPurge)
		msg.Header.Set(headerRollup, rollupSubject)
		msg.Header.Set(headerTTL, marker.String())
	}
	ack, err := d.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// isRefusal reports whether err says that the record has another revision.
func isRefusal(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// neverLeft reports whether err says that nothing was sent, so that there is nothing to
// look for.
func neverLeft(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload)
}

const retryWait = 10 * time.Millisecond

// sleep reports whether it slept for d, rather than until ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

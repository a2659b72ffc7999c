package natsdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A bucket of NATS is a stream whose name and subjects follow a pattern, so that the nats
// command shows it: nats kv ls mcppool.
func streamName(bucket string) string { return "KV_" + bucket }

func (d *Directory) subject(key string) string { return "$KV." + d.opts.bucket() + "." + key }

const (
	madeBy  = "mcppool" // the metadata's key that says whose the stream is
	version = "1"       // its value
	maxSize = 64 << 10  // bytes of a record
	marker  = time.Hour // how long the trace of a deletion is kept
)

// settings returns the stream as it must be.
//
// A client of NATS that makes a bucket always allows direct reads, which any follower
// answers, also one that lags. Ours are answered by the leader.
//
// Revisions are the stream's sequence numbers. They begin at the time in microseconds, so
// that those of a store that was lost and made anew are above all that anybody remembers
// of the old one (unless that had a million writes a second): a compare-and-swap with an
// old revision fails rather than hit a stranger's record.
func (d *Directory) settings() jetstream.StreamConfig {
	storage := jetstream.FileStorage
	if d.opts.Memory {
		storage = jetstream.MemoryStorage
	}
	return jetstream.StreamConfig{
		Name:              streamName(d.opts.bucket()),
		Description:       "Which replica owns which chat. Made by mcppool.",
		Subjects:          []string{d.subject(">")},
		MaxMsgsPerSubject: 1,
		MaxMsgSize:        maxSize,
		Discard:           jetstream.DiscardNew,
		Storage:           storage,
		Replicas:          d.opts.replicas(),
		DenyDelete:        true,
		AllowRollup:       true,
		AllowMsgTTL:       true,
		FirstSeq:          uint64(time.Now().UnixMicro()),
		Metadata:          map[string]string{madeBy: version},
	}
}

// ensure makes the stream unless it is there, and looks whether it is as it must be.
func (d *Directory) ensure(ctx context.Context) error {
	var stream jetstream.Stream
	err := d.repeat(ctx, func(ctx context.Context) error {
		s, err := d.js.Stream(ctx, streamName(d.opts.bucket()))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = d.js.CreateStream(ctx, d.settings())
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
				s, err = d.js.Stream(ctx, streamName(d.opts.bucket()))
			}
		}
		stream = s
		return err
	})
	if err != nil {
		if denied := d.deniedBy(); denied != nil {
			err = denied
		}
		return fmt.Errorf("natsdir: looking for the bucket %q: %w", d.opts.bucket(), explain(err))
	}
	if wrong := d.differences(&stream.CachedInfo().Config); len(wrong) > 0 {
		return &SettingsError{d.opts.bucket(), wrong}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stream = stream
	return nil
}

// read asks the stream's leader for the last message of a subject.
func (d *Directory) read(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	d.mu.Lock()
	stream := d.stream
	d.mu.Unlock()
	return stream.GetLastMsgForSubject(ctx, subject)
}

// orMadeAnew does f, a read; where it finds the stream gone it makes it anew and does f
// again. The records are gone: [Directory.Age] tells.
func (d *Directory) orMadeAnew(ctx context.Context, f func(context.Context) error) error {
	err := d.repeat(ctx, f)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if err := d.ensure(ctx); err != nil {
		return err
	}
	return d.repeat(ctx, f)
}

// differences returns the settings in which got isn't as it must be.
func (d *Directory) differences(got *jetstream.StreamConfig) []string {
	want := d.settings()
	var wrong []string
	compare := func(name string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, not %v", name, got, want))
		}
	}
	if got.Metadata[madeBy] == "" {
		wrong = append(wrong, "it was made by something else than mcppool")
	} else {
		compare("the version of its layout", got.Metadata[madeBy], version)
	}
	compare("allow_direct", got.AllowDirect, want.AllowDirect)
	compare("max_msgs_per_subject", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	compare("allow_msg_ttl", got.AllowMsgTTL, want.AllowMsgTTL)
	compare("allow_rollup_hdrs", got.AllowRollup, want.AllowRollup)
	compare("max_age", got.MaxAge, want.MaxAge)
	compare("discard", got.Discard, want.Discard)
	compare("retention", got.Retention, want.Retention)
	compare("storage", got.Storage, want.Storage)
	compare("num_replicas", got.Replicas, want.Replicas)
	compare("mirrored", got.Mirror != nil || len(got.Sources) > 0, false)
	if !slices.Equal(got.Subjects, want.Subjects) {
		wrong = append(wrong, fmt.Sprintf("subjects is %q, not %q", got.Subjects, want.Subjects))
	}
	return wrong
}

// info asks the server about the stream.
func (d *Directory) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = d.orMadeAnew(ctx, func(ctx context.Context) error {
		s, err := d.js.Stream(ctx, streamName(d.opts.bucket()))
		if err == nil {
			info = s.CachedInfo()
		}
		return err
	})
	return info, err
}

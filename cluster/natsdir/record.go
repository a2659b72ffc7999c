package natsdir

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcppool/mcppool/cluster"
)

// The headers that JetStream and its key-value layer give a meaning to, and one of ours.
const (
	headerOperation = "KV-Operation" // of a deletion
	operationPurge  = "PURGE"        // it, without anything before it
	headerRollup    = "Nats-Rollup"
	rollupSubject   = "sub"
	headerTTL       = "Nats-TTL"
	headerExpected  = jetstream.ExpectedLastSubjSeqHeader
	// headerWrite names the write that made a record, so that a write whose answer was
	// lost is known again.
	headerWrite = "Mcppool-Write"
)

const (
	maxKey   = 128
	maxValue = 16 << 10
)

// place returns the subject of a record.
func (d *Directory) place(b cluster.Bucket, key string, value []byte) (string, error) {
	valid := func(s string) bool {
		return s != "" && len(s) <= maxKey && !strings.ContainsFunc(s, func(r rune) bool {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			return !letter && (r < '0' || r > '9') && r != '-' && r != '_'
		})
	}
	switch {
	case !valid(string(b)):
		return "", errors.New("natsdir: no such bucket")
	case !valid(key):
		return "", errors.New("natsdir: a key has 1 to 128 letters, digits, - and _")
	case len(value) > maxValue:
		return "", fmt.Errorf("natsdir: a value has up to %d bytes, this one %d", maxValue, len(value))
	}
	return d.subject(string(b) + "." + key), nil
}

// stored is what the stream has for a subject.
type stored struct {
	value    []byte
	revision uint64 // 0: nothing at all
	deleted  bool   // the trace of a deletion, which has a revision too
	write    string
}

// last reads a subject. It repeats what got no answer.
func (d *Directory) last(ctx context.Context, subject string) (s stored, err error) {
	err = d.orMadeAnew(ctx, func(ctx context.Context) error {
		msg, err := d.read(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			s = stored{}
			return nil
		case err != nil:
			return err
		}
		s = stored{
			value: msg.Data, revision: msg.Sequence,
			deleted: isDeletion(msg.Header), write: msg.Header.Get(headerWrite),
		}
		return nil
	})
	return s, err
}

// isDeletion reports whether the message with these headers marks a deletion; another
// client's count too.
func isDeletion(h nats.Header) bool {
	return h.Get(headerOperation) != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// Get implements [cluster.Directory]. It is answered by the stream's leader.
func (d *Directory) Get(ctx context.Context, b cluster.Bucket, key string) (cluster.Record, error) {
	subject, err := d.place(b, key, nil)
	if err != nil {
		return cluster.Record{}, err
	}
	s, err := d.last(ctx, subject)
	switch {
	case err != nil:
		return cluster.Record{}, d.failed("reading", err)
	case s.revision == 0 || s.deleted:
		return cluster.Record{}, cluster.ErrNotFound
	}
	return cluster.Record{Key: key, Value: s.value, Revision: s.revision}, nil
}

// Create implements [cluster.Directory].
func (d *Directory) Create(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	subject, err := d.place(b, key, value)
	if err != nil {
		return 0, err
	}
	return d.write(ctx, intent{subject: subject, value: value, refused: cluster.ErrExists, create: true})
}

// Update implements [cluster.Directory].
func (d *Directory) Update(ctx context.Context, b cluster.Bucket, key string, value []byte, revision uint64) (uint64, error) {
	subject, err := d.place(b, key, value)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return 0, cluster.ErrConflict
	}
	return d.write(ctx, intent{subject: subject, value: value, expected: revision, refused: cluster.ErrConflict})
}

// Delete implements [cluster.Directory].
func (d *Directory) Delete(ctx context.Context, b cluster.Bucket, key string, revision uint64) error {
	subject, err := d.place(b, key, nil)
	if err != nil {
		return err
	}
	if revision == 0 {
		return cluster.ErrConflict
	}
	_, err = d.write(ctx, intent{subject: subject, expected: revision, refused: cluster.ErrConflict, deletion: true})
	return err
}

// Put implements [cluster.Directory]. It is a compare-and-swap on what is there too: so it
// is done once, also when an answer is lost.
func (d *Directory) Put(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	subject, err := d.place(b, key, value)
	if err != nil {
		return 0, err
	}
	for {
		now, err := d.last(ctx, subject)
		if err != nil {
			return 0, d.failed("reading", err)
		}
		revision, err := d.write(ctx, intent{subject: subject, value: value, expected: now.revision, refused: cluster.ErrConflict})
		if !errors.Is(err, cluster.ErrConflict) || ctx.Err() != nil {
			return revision, err
		}
	}
}

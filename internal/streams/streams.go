// Package streams has the subscriptions of a modern connection.
//
// There a server reports a change only on a stream that was opened for it: a
// subscriptions/listen request, which stays open. Its messages are those of the
// connection, tagged with the request's id, and the first one acknowledges what the
// server agreed to. See
// https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions.
//
// Each resource has a stream of its own, so that one comes and goes without a gap in
// the others.
package streams

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

var (
	errNotGranted = errors.New("server does not tell of changes of this resource")
	errStreamEnd  = errors.New("server ended the subscription")
	errClosed     = errors.New("connection closed")
)

// Listen makes one subscriptions/listen, and calls sent with its id before anything
// is sent. It returns nil when the server has ended it.
type Listen func(ctx context.Context, filter mcp.SubscriptionFilter, sent func(id string)) error

// Set is the streams of one connection.
type Set struct {
	life   context.Context // of the streams
	listen Listen
	work   sync.WaitGroup // one goroutine for each stream, and one that renews

	mu         sync.Mutex // protects the fields below
	closed     bool
	ofResource map[string]*stream // by URI
	waiting    map[string]*stream // by the id of the request, until it is acknowledged
}

// New returns the streams of a connection that ends with life.
func New(life context.Context, listen Listen) *Set {
	return &Set{life: life, listen: listen, ofResource: make(map[string]*stream), waiting: make(map[string]*stream)}
}

// stream is one subscriptions/listen.
type stream struct {
	filter mcp.SubscriptionFilter
	cancel context.CancelFunc
	id     string        // of the request, once it is sent; protected by Set.mu
	acked  chan struct{} // closed when the server has acknowledged it
	grants bool          // that it reports the resource; written before acked is closed
	ended  chan struct{} // closed once the request has ended
	err    error         // why it did; written before ended is closed
}

// openLocked opens a stream. The caller must hold t.mu.
func (t *Set) openLocked(filter mcp.SubscriptionFilter) *stream {
	s := &stream{filter: filter, acked: make(chan struct{}), ended: make(chan struct{})}
	if t.closed {
		s.cancel, s.err = func() {}, errClosed
		close(s.ended)
		return s
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(t.life)
	t.work.Go(func() {
		err := t.listen(ctx, s.filter, func(id string) { t.await(s, id) })
		s.cancel()
		t.forget(s)
		if s.err = err; err == nil {
			s.err = errStreamEnd
		}
		close(s.ended)
	})
	return s
}

// await makes a stream known to Acknowledged by the id of its request.
func (t *Set) await(s *stream, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.id = id
	t.waiting[id] = s
}

// Acknowledged takes the params of notifications/subscriptions/acknowledged.
func (t *Set) Acknowledged(params json.RawMessage) {
	var p struct {
		Notifications mcp.SubscriptionFilter     `json:"notifications"`
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id := string(p.Meta[mcp.MetaKeySubscriptionID])
	if text, err := strconv.Unquote(id); err == nil {
		id = text
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.waiting[id]; s != nil {
		delete(t.waiting, id)
		s.grants = len(p.Notifications.ResourceSubscriptions) > 0
		close(s.acked)
	}
}

func (t *Set) forget(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, s.id)
	for _, uri := range s.filter.ResourceSubscriptions {
		if t.ofResource[uri] == s {
			delete(t.ofResource, uri)
		}
	}
}

// Subscribe opens the stream of a resource, or joins the one that there is, and
// waits until the server has acknowledged it. When ctx ends first the stream stays.
func (t *Set) Subscribe(ctx context.Context, uri string) error {
	t.mu.Lock()
	s := t.ofResource[uri]
	if s == nil {
		s = t.openLocked(mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
		t.ofResource[uri] = s
	}
	t.mu.Unlock()
	select {
	case <-s.acked:
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
	if !s.grants {
		s.cancel()
		return errNotGranted
	}
	return nil
}

// Unsubscribe ends the stream of a resource, if there is one.
func (t *Set) Unsubscribe(ctx context.Context, uri string) error {
	t.mu.Lock()
	s := t.ofResource[uri]
	delete(t.ofResource, uri)
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	s.cancel()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Len counts the resources that there is a stream for.
func (t *Set) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ofResource)
}

// Wait waits for the streams of a connection that has ended, and lets no new one
// begin.
func (t *Set) Wait() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.work.Wait()
}

package mcpconn

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// On a modern connection a server tells of a change only on a stream that was
// opened for it: a subscriptions/listen request, which stays open. Its messages
// are those of the connection, tagged with the request's id, and the first one
// acknowledges what the server agreed to. See
// https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions.
//
// Each resource has a stream of its own, so that one comes and goes without a
// gap in the others. mcp-go's client has one stream, and each replaces the last.

var (
	errNotGranted = errors.New("server does not tell of changes of this resource")
	errStreamEnd  = errors.New("server ended the subscription")
	errNoStreams  = errors.New("connection closed")
)

// streams are those of one connection.
type streams struct {
	work sync.WaitGroup // one goroutine for each stream

	mu         sync.Mutex // protects the fields below
	closed     bool
	last       uint64             // number of the newest stream over HTTP
	ofResource map[string]*stream // by URI
	waiting    map[string]*stream // by the id of the request, until it is acknowledged
}

// stream is one subscriptions/listen.
type stream struct {
	filter mcp.SubscriptionFilter
	cancel context.CancelFunc
	id     string        // of the request, once it is sent; protected by streams.mu
	acked  chan struct{} // closed when the server has acknowledged it
	grants bool          // that it tells of the resource; written before acked is closed
	ended  chan struct{} // closed once the request has ended
	err    error         // why it did; written before ended is closed
}

// listenForTools asks to be told when the tools change, which older servers do
// unasked. Without it the server is as good as one that doesn't tell.
func (c *Conn) listenForTools() {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	c.openLocked(mcp.SubscriptionFilter{ToolsListChanged: true})
}

// openLocked opens a stream. The caller must hold c.streams.mu.
func (c *Conn) openLocked(filter mcp.SubscriptionFilter) *stream {
	s := &stream{filter: filter, acked: make(chan struct{}), ended: make(chan struct{})}
	if c.streams.closed {
		s.cancel, s.err = func() {}, errNoStreams
		close(s.ended)
		return s
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(c.life)
	c.streams.work.Go(func() {
		err := c.listen(ctx, s)
		s.cancel()
		c.streams.forget(s)
		s.err = err
		close(s.ended)
	})
	return s
}

// listen makes the request of a stream and returns why it ended.
func (c *Conn) listen(ctx context.Context, s *stream) error {
	req := transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION,
		Method:  string(mcp.MethodSubscriptionsListen),
		Params:  map[string]any{"notifications": s.filter, "_meta": c.meta.Load().fields},
	}
	var (
		answer *transport.JSONRPCResponse
		err    error
	)
	if c.child != nil {
		answer, err = c.child.SendRequestAs(ctx, req, func(id int64) {
			c.streams.await(s, strconv.FormatInt(id, 10))
		})
	} else {
		req.ID = mcp.NewRequestId(c.streams.await(s, ""))
		c.addHeader(&req)
		answer, err = c.sender.SendRequest(ctx, req)
	}
	switch {
	case err != nil:
		return plain(err)
	case answer.Error != nil:
		return rpcError(answer.Error)
	default:
		return errStreamEnd
	}
}

// await makes a stream known to acknowledged by the id of its request; an empty
// one is made up.
func (t *streams) await(s *stream, id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" {
		t.last++
		id = streamID + strconv.FormatUint(t.last, 10)
	}
	if t.waiting == nil {
		t.waiting = make(map[string]*stream)
	}
	s.id = id
	t.waiting[id] = s
	return id
}

// acknowledged takes the params of notifications/subscriptions/acknowledged.
func (t *streams) acknowledged(params json.RawMessage) {
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

func (t *streams) forget(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, s.id)
	for _, uri := range s.filter.ResourceSubscriptions {
		if t.ofResource[uri] == s {
			delete(t.ofResource, uri)
		}
	}
}

// subscribe opens the stream of a resource, or joins the one that there is, and
// waits until the server has acknowledged it. When ctx ends first the stream
// stays.
func (c *Conn) subscribe(ctx context.Context, uri string) error {
	t := &c.streams
	t.mu.Lock()
	s := t.ofResource[uri]
	if s == nil {
		s = c.openLocked(mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
		if t.ofResource == nil {
			t.ofResource = make(map[string]*stream)
		}
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

// unsubscribe ends the stream of a resource, if there is one.
func (c *Conn) unsubscribe(ctx context.Context, uri string) error {
	c.streams.mu.Lock()
	s := c.streams.ofResource[uri]
	delete(c.streams.ofResource, uri)
	c.streams.mu.Unlock()
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

// wait waits for the streams of a connection that has ended, and lets no new one
// begin.
func (t *streams) wait() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.work.Wait()
}

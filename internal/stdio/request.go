package stdio

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcppool/mcppool/internal/frame"
)

// Request makes one request, whose params are a JSON object or nil, and returns its
// result, undecoded. Its errors are those of [Conn.Call].
func (c *Conn) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return c.request(ctx, method, params, nil)
}

// Listen is Request for a subscription, which is answered only at its end. Before
// anything is sent, begin is called with the id that the request has.
func (c *Conn) Listen(ctx context.Context, method string, params json.RawMessage, begin func(id int64)) error {
	_, err := c.request(ctx, method, params, begin)
	return err
}

func (c *Conn) request(ctx context.Context, method string, params json.RawMessage, begin func(id int64)) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, &NotSentError{Err: err}
	}
	o := c.newOutgoing()
	o.id = c.ids.Add(1)
	if begin != nil {
		o.lasting = true
		begin(o.id)
	}
	o.unnoticed = method == "initialize" || method == "server/discover" // the handshake mustn't be cancelled
	o.frame = frame.AppendRequest(o.grow(len(method)+len(params)), o.id, method, params)
	if err := c.roundTrip(ctx, o); err != nil {
		return nil, err
	}
	defer o.free()
	if o.rpcErr != nil {
		return nil, decodeError(o.rpcErr)
	}
	return bytes.Clone(o.result), nil
}

// Notify sends a notification, whose params are a JSON object or nil, and returns
// once it is written. Its errors are [*NotSentError], ctx's and [*DeadError].
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	o := c.newOutgoing()
	o.tells = true
	o.frame = frame.AppendNotification(nil, method, params)
	return c.tell(ctx, o)
}

// tell sends a message that has no answer.
func (c *Conn) tell(ctx context.Context, o *outgoing) error {
	c.mu.Lock()
	if c.dead != nil {
		dead := c.dead
		c.mu.Unlock()
		return &NotSentError{Err: dead}
	}
	writer := c.out.pushLocked(o)
	c.mu.Unlock()
	if writer {
		c.flush(o)
	}
	var err error
	select {
	case <-o.ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.done:
		err = c.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch sent := c.out.withdrawLocked(o); {
	case len(o.ready) > 0:
		return nil
	case !sent:
		return &NotSentError{Err: err}
	}
	return err
}

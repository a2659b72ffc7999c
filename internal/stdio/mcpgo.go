package stdio

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/frame"
	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Conn is a transport of mcp-go. It has no SetProtocolVersion: with one, the
// client would take it for HTTP.
var _ transport.BidirectionalInterface = (*Conn)(nil)

// Start does nothing: the function Start has started the connection.
func (c *Conn) Start(context.Context) error { return nil }

// GetSessionId returns "": stdio has no session ids.
func (c *Conn) GetSessionId() string { return "" }

// SetNotificationHandler sets who hears of notifications when there is no
// Config.OnNotification. What came before is dropped.
func (c *Conn) SetNotificationHandler(h func(mcp.JSONRPCNotification)) {
	c.mcpNotification.Store(&h)
}

// SetRequestHandler sets who answers the server when there is no
// Config.OnRequest.
func (c *Conn) SetRequestHandler(h transport.RequestHandler) { c.mcpRequest.Store(&h) }

// SendRequest sends a request of mcp-go's client and waits for its answer; the
// errors are those of [Conn.Call], but for the server's own, which are in the
// answer. On the wire it has another id than in r.
func (c *Conn) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return c.SendRequestAs(ctx, r, nil)
}

// SendRequestAs is SendRequest for a request whose id the caller must know:
// before anything is sent, begin is told the id that it has on the wire.
func (c *Conn) SendRequestAs(ctx context.Context, r transport.JSONRPCRequest, begin func(id int64)) (*transport.JSONRPCResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, &NotSentError{err}
	}
	params, err := encodeParams(r.Params)
	if err != nil {
		return nil, &NotSentError{err}
	}
	o := c.newOutgoing()
	o.id = c.ids.Add(1)
	if begin != nil {
		begin(o.id)
	}
	o.unnoticed = uncancellable(r.Method, params)
	o.lasting = r.Method == string(mcp.MethodSubscriptionsListen)
	o.frame = frame.AppendRequest(o.grow(len(r.Method)+len(params)), o.id, r.Method, params)
	if err := c.roundTrip(ctx, o); err != nil {
		return nil, err
	}
	result, rpcErr := bytes.Clone(o.result), o.rpcErr
	o.free()

	resp := &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: r.ID, Result: result}
	if rpcErr != nil {
		resp.Error = new(mcp.JSONRPCErrorDetails)
		if json.Unmarshal(rpcErr, resp.Error) != nil {
			e := decodeError(rpcErr)
			resp.Error = &mcp.JSONRPCErrorDetails{Code: e.Code, Message: e.Message}
		}
	}
	return resp, nil
}

// uncancellable reports that the end of a request's ctx isn't told to the
// server: the handshake mustn't be cancelled, and a task has a request of its
// own for it.
func uncancellable(method string, params []byte) bool {
	switch method {
	case string(mcp.MethodInitialize), string(mcp.MethodServerDiscover):
		return true
	}
	if !bytes.Contains(params, []byte(`"task"`)) {
		return false
	}
	var p struct {
		Task json.RawMessage `json:"task"`
	}
	return json.Unmarshal(params, &p) == nil && len(p.Task) > 0 && string(p.Task) != "null"
}

// SendNotification sends a notification and returns once it is written.
//
// It drops notifications/cancelled: the Conn itself tells the server when a
// request is given up, by the id that the server knows, and before Close.
func (c *Conn) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	if n.Method == string(mcp.MethodNotificationCancelled) {
		return nil
	}
	params, err := encodeParams(n.Params)
	if err != nil {
		return &NotSentError{err}
	}
	if string(params) == "{}" {
		params = nil
	}
	o := c.newOutgoing()
	o.tells = true
	o.frame = frame.AppendNotification(nil, n.Method, params)
	return c.tell(ctx, o)
}

// tell sends a message that has no answer.
func (c *Conn) tell(ctx context.Context, o *outgoing) error {
	c.mu.Lock()
	if c.dead != nil {
		dead := c.dead
		c.mu.Unlock()
		return &NotSentError{dead}
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
		return &NotSentError{err}
	}
	return err
}

// encodeParams encodes params; nil when there are none.
func encodeParams(params any) ([]byte, error) {
	if params == nil {
		return nil, nil
	}
	raw, err := encode(params)
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return raw, nil
}

// mcpNotification is a notification as mcp-go's client wants it. Params that
// are no object are left out.
func mcpNotification(method string, params json.RawMessage) mcp.JSONRPCNotification {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	if params != nil && jsonscan.Object(params) == nil {
		_ = json.Unmarshal(params, &n.Params) // it is an object, and any will do
	}
	return n
}

// mcpID is the id of a server's request as mcp-go wants it.
func mcpID(raw []byte) (id mcp.RequestId) {
	if json.Unmarshal(raw, &id) != nil {
		return mcp.NewRequestId(string(raw))
	}
	return id
}

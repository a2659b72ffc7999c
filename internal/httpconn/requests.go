package httpconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/offers"
	"github.com/mcppool/mcppool/internal/rounds"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Ids of requests that don't go through mcp-go's client, which counts its own up from
// 1, are texts.
func (c *Conn) nextID() string { return "r" + strconv.FormatInt(c.ids.Add(1), 10) }

// Request makes one request, whose params are an object or nil.
func (c *Conn) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return c.send(ctx, c.nextID(), method, c.meta.Load().In(params))
}

func (c *Conn) send(ctx context.Context, id, method string, params json.RawMessage) (json.RawMessage, error) {
	req := transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method, Header: c.headers(method, params),
	}
	if params != nil {
		req.Params = params
	}
	var x exchange
	answer, err := c.sender.SendRequest(x.in(ctx), req)
	if err != nil {
		return nil, x.explain(ctx, c.limit, err)
	}
	return resultOf(answer)
}

// Notify sends a notification, whose params are an object or nil.
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	if params = c.meta.Load().In(params); len(params) > 0 {
		if err := json.Unmarshal(params, &n.Params); err != nil {
			return &rpc.ConfigError{Field: "params", Reason: "aren't a JSON object"}
		}
	}
	return plain(c.sender.SendNotification(ctx, n))
}

// ListTools is tools/list, one page of it. It goes through mcp-go's client, which
// learns of the tools what headers their calls want.
func (c *Conn) ListTools(ctx context.Context, req mcp.ListToolsRequest) (*rpc.ToolList, error) {
	raw, err := c.captured(ctx, func(ctx context.Context) error {
		_, err := c.mcp.ListToolsByPage(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	list, err := decode.Tools(raw)
	if err != nil || c.meta.Load() == nil {
		return list, err
	}
	// The specification has clients leave these out over HTTP.
	kept := list.Tools[:0]
	for _, t := range list.Tools {
		if err := mcp.ValidateParamHeaderAnnotations(&t); err != nil {
			list.Skipped = append(list.Skipped, rpc.SkippedTool{Name: t.Name, Reason: err.Error()})
			continue
		}
		kept = append(kept, t)
	}
	list.Tools = kept
	return list, nil
}

// CallTool calls a tool.
func (c *Conn) CallTool(ctx context.Context, call rpc.ToolCall) (*mcp.CallToolResult, error) {
	token := ""
	if call.OnProgress != nil {
		token = c.progress.Add(call.OnProgress)
		defer c.progress.Remove(token)
	}
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments, req.Params.Meta = call.Tool, call.Args, withToken(call.Meta, token)
	if call.Args == nil {
		req.Params.Arguments = json.RawMessage("{}")
	}
	raw, err := c.captured(ctx, func(ctx context.Context) error {
		_, err := c.mcp.CallTool(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	res, err := c.decoder.Decode(raw)
	if err != nil || !res.NeedsInput() {
		return res, err
	}
	return rounds.Continue(ctx, c, &c.cfg.Handlers, res, func(more json.RawMessage) (*mcp.CallToolResult, error) {
		return c.again(ctx, &call, token, more)
	})
}

// withToken is a _meta with a progress token, unless that is empty.
func withToken(meta *mcp.Meta, token string) *mcp.Meta {
	if token == "" {
		return meta
	}
	own := mcp.Meta{ProgressToken: token}
	if meta != nil {
		own.AdditionalFields = meta.AdditionalFields
	}
	return &own
}

// again is a further round of a call.
func (c *Conn) again(ctx context.Context, call *rpc.ToolCall, token string, more json.RawMessage) (*mcp.CallToolResult, error) {
	if call.Gate != nil {
		if err := call.Gate(); err != nil {
			return nil, err
		}
	}
	meta, err := c.meta.Load().Joined(call.Meta, token)
	if err != nil {
		return nil, err
	}
	args := call.Args
	if args == nil {
		args = json.RawMessage("{}")
	}
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s,"_meta":%s,%s}`, quoted(call.Tool), args, meta, more)
	raw, err := c.send(ctx, c.nextID(), string(mcp.MethodToolsCall), params)
	if err != nil {
		return nil, err
	}
	return c.decoder.Decode(raw)
}

func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic("bug: a string can't be encoded: " + err.Error())
	}
	return text
}

// Go and Ending make a Host of rounds of c.
func (c *Conn) Go(f, after func()) bool { return c.guests.Go(f, after) }

// Ending returns a ctx that ends with the connection.
func (c *Conn) Ending() context.Context { return c.life }

// Probe reports whether the server is alive: nil, or why it isn't known to be. An
// error is an answer.
func (c *Conn) Probe(ctx context.Context) error {
	method := string(mcp.MethodPing)
	if c.meta.Load() != nil {
		method = string(mcp.MethodServerDiscover)
	}
	_, err := c.Request(ctx, method, nil)
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// SetLevel sets the least severity of the log messages that the server sends. On a
// modern connection every request after it carries the level.
func (c *Conn) SetLevel(ctx context.Context, req mcp.SetLevelRequest) error {
	_, err := typed(ctx, c.limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.mcp.SetLevel(ctx, req) })
	for m := c.meta.Load(); err == nil && m != nil; m = c.meta.Load() {
		if c.meta.CompareAndSwap(m, m.WithLevel(req.Params.Level)) {
			break
		}
	}
	return err
}

// Subscribe asks to be told when a resource changes: on a modern connection on a
// stream of its own.
func (c *Conn) Subscribe(ctx context.Context, req mcp.SubscribeRequest) error {
	if c.meta.Load() != nil {
		return c.streams.Subscribe(ctx, req.Params.URI)
	}
	return c.tell(ctx, "resources/subscribe", req.Params)
}

// Unsubscribe ends what Subscribe began.
func (c *Conn) Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error {
	if c.meta.Load() != nil {
		return c.streams.Unsubscribe(ctx, req.Params.URI)
	}
	return c.tell(ctx, "resources/unsubscribe", req.Params)
}

// tell makes a request whose result says nothing.
func (c *Conn) tell(ctx context.Context, method string, params any) error {
	raw, err := offers.Params(params)
	if err == nil {
		_, err = c.Request(ctx, method, raw)
	}
	return err
}

// listen is one subscriptions/listen.
func (c *Conn) listen(ctx context.Context, filter mcp.SubscriptionFilter, sent func(id string)) error {
	params, err := offers.Params(map[string]any{"notifications": filter})
	if err != nil {
		return err
	}
	id := c.nextID()
	sent(id)
	_, err = c.send(ctx, id, string(mcp.MethodSubscriptionsListen), c.meta.Load().In(params))
	return err
}

package mcpconn

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/stdio"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// ToolCall is one tools/call.
type ToolCall struct {
	Tool string
	Args json.RawMessage // a JSON object, as one line
	Meta *mcp.Meta       // nil for none but what the protocol asks for
	// Gate is asked right before the bytes go to a child, see stdio.Request; nil
	// means none. Over HTTP it isn't asked.
	Gate func() error
	// OnProgress gets the progress of the call, all of it before the call
	// returns. Over HTTP it gets none.
	OnProgress func(mcp.ProgressNotification)
	// ID, unless it is nil, is set to the id of the request. Over HTTP it isn't.
	ID *int64
}

// CallTool calls a tool. Its errors are [*RPCError], [*NotSentError],
// [*ConfigError], and whatever else the end of ctx or the loss of the connection
// gives; see [IsLost].
func (c *Conn) CallTool(ctx context.Context, call ToolCall) (*mcp.CallToolResult, error) {
	res, err := c.callOnce(ctx, &call)
	if err == nil && res.NeedsInput() {
		return c.continued(ctx, &call, res)
	}
	return res, err
}

func (c *Conn) decode(raw json.RawMessage) (*mcp.CallToolResult, error) {
	return decoded(toolresult.Decode(raw, c.cfg.UnknownContent))
}

func decoded(res *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		return nil, fmt.Errorf("undecodable result: %w", err)
	}
	return res, nil
}

func (c *Conn) callOnce(ctx context.Context, call *ToolCall) (*mcp.CallToolResult, error) {
	if c.child == nil {
		var req mcp.CallToolRequest
		req.Params.Name, req.Params.Arguments, req.Params.Meta = call.Tool, call.Args, call.Meta
		raw, err := rawResult(ctx, func(ctx context.Context) error {
			_, err := c.mcp.CallTool(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		return c.decode(raw)
	}
	r := stdio.Request{Tool: call.Tool, Args: call.Args, Gate: call.Gate, ID: call.ID}
	if m := c.meta.Load(); m != nil {
		r.Meta = m.text
	}
	if call.Meta != nil || call.OnProgress != nil {
		meta, done, err := c.callMeta(call)
		if err != nil {
			return nil, err
		}
		defer done()
		r.Meta, r.Progress = meta, call.OnProgress != nil
	}
	answer, err := c.child.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	defer answer.Release() // nothing of the result is part of what is decoded
	return decoded(toolresult.DecodeScanned(answer.Result, answer.Long, c.cfg.UnknownContent))
}

// callMeta is the _meta of a call that has more in it than usual. done ends the
// delivery of progress.
func (c *Conn) callMeta(call *ToolCall) (_ json.RawMessage, done func(), err error) {
	fields := make(map[string]any)
	if m := c.meta.Load(); m != nil {
		fields = maps.Clone(m.fields)
	}
	if call.Meta != nil {
		maps.Copy(fields, call.Meta.AdditionalFields)
		if call.Meta.ProgressToken != nil {
			fields["progressToken"] = call.Meta.ProgressToken
		}
	}
	done = func() {}
	if call.OnProgress != nil {
		token := c.progress.add(call.OnProgress)
		fields["progressToken"] = token
		done = func() { c.progress.remove(token) }
	}
	meta, err := encode.JSON(fields)
	if err != nil {
		done()
		return nil, nil, &ConfigError{Field: "Meta", Reason: "can't be encoded: " + encode.Reason(err)}
	}
	return meta, done, nil
}

// progressHandlers are those of the calls under way, by token. No token is used
// twice on a connection, so that progress which comes late reaches nobody.
type progressHandlers struct {
	mu   sync.Mutex // protects the fields below
	of   map[string]func(mcp.ProgressNotification)
	last uint64
}

func (p *progressHandlers) add(f func(mcp.ProgressNotification)) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	token = "p" + strconv.FormatUint(p.last, 10)
	if p.of == nil {
		p.of = make(map[string]func(mcp.ProgressNotification))
	}
	p.of[token] = f
	return token
}

func (p *progressHandlers) remove(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, token)
}

func (p *progressHandlers) deliver(params json.RawMessage) {
	n := mcp.ProgressNotification{}
	n.Method = string(mcp.MethodNotificationProgress)
	if json.Unmarshal(params, &n.Params) != nil {
		return
	}
	token, _ := n.Params.ProgressToken.(string)
	p.mu.Lock()
	f := p.of[token]
	p.mu.Unlock()
	if f != nil {
		f(n)
	}
}

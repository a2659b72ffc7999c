package mcpconn

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
)

// A modern server asks for what older ones ask for with requests of their own
// (sampling, elicitation, roots) by a result: it names what it needs, and gets the
// call again with the answers. See
// https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr.

// maxInputRounds bounds how often a server may ask within one call.
const maxInputRounds = 10

// continued goes on with a call whose result asks for input, as long as there are
// handlers for all that it asks. A result that asks for something else is the
// caller's.
func (c *Conn) continued(ctx context.Context, call *ToolCall, res *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	for range maxInputRounds {
		if !res.NeedsInput() || len(res.InputRequests) == 0 || !c.canAnswer(res.InputRequests) {
			return res, nil
		}
		answers, err := c.answer(ctx, res.InputRequests)
		if err != nil {
			return nil, err
		}
		raw, err := c.callAgain(ctx, call, mcp.MultiRoundTripParams{InputResponses: answers, RequestState: res.RequestState})
		if err != nil {
			return nil, err
		}
		if res, err = c.decode(raw); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (c *Conn) canAnswer(requests mcp.InputRequests) bool {
	h := &c.cfg.Handlers
	for _, r := range requests {
		switch {
		case r.Method == mcp.MethodSamplingCreateMessage && r.Sampling != nil && h.Sampling != nil:
		case r.Method == mcp.MethodElicitationCreate && r.Elicitation != nil && h.Elicitation != nil:
		case r.Method == mcp.MethodListRoots && h.Roots != nil:
		default:
			return false
		}
	}
	return true
}

// answer asks the handlers, one after the other in the order of the ids.
func (c *Conn) answer(ctx context.Context, requests mcp.InputRequests) (answers mcp.InputResponses, err error) {
	defer func() {
		if recover() != nil {
			answers, err = nil, fmt.Errorf("a handler panicked while the server waited for input")
		}
	}()
	answers = make(mcp.InputResponses, len(requests))
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		r := requests[id]
		if answers[id], err = c.answerOne(ctx, r); err != nil {
			return nil, fmt.Errorf("the server asked for %s: %w", r.Method, err)
		}
	}
	return answers, nil
}

func (c *Conn) answerOne(ctx context.Context, r mcp.InputRequest) (a mcp.InputResponse, err error) {
	h := asked{&c.cfg.Handlers}
	switch r.Method {
	case mcp.MethodSamplingCreateMessage:
		a.Sampling, err = h.CreateMessage(ctx, mcp.CreateMessageRequest{
			Request: mcp.Request{Method: string(r.Method)}, CreateMessageParams: *r.Sampling,
		})
	case mcp.MethodElicitationCreate:
		a.Elicitation, err = h.Elicit(ctx, mcp.ElicitationRequest{
			Request: mcp.Request{Method: string(r.Method)}, Params: *r.Elicitation,
		})
	case mcp.MethodListRoots:
		a.Roots, err = h.ListRoots(ctx, mcp.ListRootsRequest{})
		if err == nil && a.Roots.Roots == nil {
			a.Roots.Roots = []mcp.Root{} // null isn't allowed
		}
	}
	if err == nil && a.Sampling == nil && a.Elicitation == nil && a.Roots == nil {
		err = fmt.Errorf("the handler gave no answer")
	}
	return a, err
}

// callAgain sends a call once more, with answers.
func (c *Conn) callAgain(ctx context.Context, call *ToolCall, answers mcp.MultiRoundTripParams) (json.RawMessage, error) {
	if call.Gate != nil {
		if err := call.Gate(); err != nil {
			return nil, err
		}
	}
	meta, done, err := c.callMeta(call)
	if err != nil {
		return nil, err
	}
	defer done()
	params := map[string]any{"name": call.Tool, "arguments": call.Args, "_meta": meta, "inputResponses": answers.InputResponses}
	if answers.RequestState != "" {
		params["requestState"] = answers.RequestState
	}
	raw, err := encode.JSON(params)
	if err != nil {
		return nil, fmt.Errorf("an answer of a handler can't be encoded: %s", encode.Reason(err))
	}
	req := transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(inputID), Method: string(mcp.MethodToolsCall), Params: json.RawMessage(raw),
	}
	c.addHeader(&req)
	resp, err := c.sender.SendRequest(ctx, req)
	switch {
	case err != nil:
		return nil, plain(err)
	case resp.Error != nil:
		return nil, rpcError(resp.Error)
	default:
		return resp.Result, nil
	}
}

// Package rounds answers what servers ask of their client: a legacy one by requests
// of its own, a modern one by the result of a call, which names what is needed and
// gets the call again with the answers. See
// https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr.
package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/rpc"
)

var errNoAnswer = errors.New("the handler gave no answer")

// CanAnswer reports whether there is a handler for a request.
func CanAnswer(h *rpc.Handlers, r mcp.InputRequest) bool {
	switch r.Method {
	case mcp.MethodSamplingCreateMessage:
		return r.Sampling != nil && h.Sampling != nil
	case mcp.MethodElicitationCreate:
		return r.Elicitation != nil && h.Elicitation != nil
	case mcp.MethodListRoots:
		return h.Roots != nil
	}
	return false
}

// Serve answers a request that a server makes of its own. Its errors are [*rpc.Error].
func Serve(ctx context.Context, h *rpc.Handlers, method string, params json.RawMessage) (any, error) {
	r, err := requestOf(method, params)
	if err != nil {
		return nil, &rpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error()}
	}
	if !CanAnswer(h, r) {
		return nil, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "method not found: " + method}
	}
	a, err := answer(ctx, h, r)
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: err.Error()}
	}
	return a, nil
}

// requestOf decodes what a server asks.
func requestOf(method string, params json.RawMessage) (mcp.InputRequest, error) {
	r := mcp.InputRequest{Method: mcp.MCPMethod(method)}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	var err error
	switch r.Method {
	case mcp.MethodSamplingCreateMessage:
		r.Sampling, err = decode.Into[mcp.CreateMessageParams](params)
	case mcp.MethodElicitationCreate:
		r.Elicitation, err = decode.Into[mcp.ElicitationParams](params)
	}
	return r, err
}

// answer calls the handler for a request that CanAnswer.
func answer(ctx context.Context, h *rpc.Handlers, r mcp.InputRequest) (a mcp.InputResponse, err error) {
	switch r.Method {
	case mcp.MethodSamplingCreateMessage:
		params := *r.Sampling
		if params.Messages, err = contents(params.Messages); err != nil {
			return a, err
		}
		a.Sampling, err = h.Sampling(ctx, mcp.CreateMessageRequest{
			Request: mcp.Request{Method: string(r.Method)}, CreateMessageParams: params,
		})
	case mcp.MethodElicitationCreate:
		if err = r.Elicitation.Validate(); err != nil {
			return a, err
		}
		a.Elicitation, err = h.Elicitation(ctx, mcp.ElicitationRequest{
			Request: mcp.Request{Method: string(r.Method)}, Params: *r.Elicitation,
		})
	case mcp.MethodListRoots:
		var roots []mcp.Root
		if roots, err = h.Roots(ctx); roots == nil {
			roots = []mcp.Root{} // null isn't allowed
		}
		a.Roots = &mcp.ListRootsResult{Roots: roots}
	}
	if err == nil && a.Sampling == nil && a.Elicitation == nil && a.Roots == nil {
		err = errNoAnswer
	}
	return a, err
}

// contents returns messages whose content is of mcp-go's types.
func contents(messages []mcp.SamplingMessage) ([]mcp.SamplingMessage, error) {
	out := make([]mcp.SamplingMessage, len(messages))
	for i, m := range messages {
		content, err := mcp.ParseSamplingContent(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		out[i] = mcp.SamplingMessage{Role: m.Role, Content: content}
	}
	return out, nil
}

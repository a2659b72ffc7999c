// Package offers has the typed requests for what a server offers besides tools, made
// of the raw ones of a connection. A request that has a cursor returns one page.
package offers

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/encode"
	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/toolresult"
)

// Requester makes raw requests.
type Requester interface {
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	Notify(ctx context.Context, method string, params json.RawMessage) error
}

// Methods are the typed requests over a connection. Their errors are those of its
// Request.
type Methods struct {
	to      Requester
	unknown toolresult.Unknown
}

// Of returns the typed requests over a connection. Unknown makes a content block of
// a type that mcp-go doesn't know.
func Of(to Requester, unknown toolresult.Unknown) Methods { return Methods{to, unknown} }

// Request makes one request and returns its result undecoded. Params encode to an
// object; nil is none.
func (m *Methods) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if params == nil {
		return m.to.Request(ctx, method, nil)
	}
	encoded, err := Params(params)
	if err != nil {
		return nil, err
	}
	return m.to.Request(ctx, method, encoded)
}

// Notify sends a notification. Params are those of Request.
func (m *Methods) Notify(ctx context.Context, method string, params any) error {
	if params == nil {
		return m.to.Notify(ctx, method, nil)
	}
	encoded, err := Params(params)
	if err != nil {
		return err
	}
	return m.to.Notify(ctx, method, encoded)
}

// ask makes a request and decodes its result. Params must encode to an object.
func ask[T any](ctx context.Context, m *Methods, method string, params any, read func([]byte) (T, error)) (res T, err error) {
	raw, err := m.Request(ctx, method, params)
	if err != nil {
		return res, err
	}
	answer, err := read(raw)
	if err != nil {
		return res, err
	}
	return answer, nil
}

// Params encodes the params of a request; its error is a [*rpc.ConfigError].
func Params(params any) (json.RawMessage, error) {
	raw, err := encode.JSON(params)
	if err != nil {
		return nil, &rpc.ConfigError{Field: "Meta", Reason: "can't be encoded: " + encode.Reason(err)}
	}
	return raw, nil
}

// ListResources is resources/list.
func (m *Methods) ListResources(ctx context.Context, req mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	return ask(ctx, m, string(mcp.MethodResourcesList), req.Params, decode.Resources)
}

// ListResourceTemplates is resources/templates/list.
func (m *Methods) ListResourceTemplates(ctx context.Context, req mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error) {
	return ask(ctx, m, string(mcp.MethodResourcesTemplatesList), req.Params, decode.Templates)
}

// ReadResource is resources/read.
func (m *Methods) ReadResource(ctx context.Context, req mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return ask(ctx, m, string(mcp.MethodResourcesRead), req.Params, decode.Resource)
}

// ListPrompts is prompts/list.
func (m *Methods) ListPrompts(ctx context.Context, req mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error) {
	return ask(ctx, m, string(mcp.MethodPromptsList), req.Params, decode.Prompts)
}

// GetPrompt is prompts/get.
func (m *Methods) GetPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return ask(ctx, m, string(mcp.MethodPromptsGet), req.Params, m.prompt)
}

// Complete is completion/complete.
func (m *Methods) Complete(ctx context.Context, req mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return ask(ctx, m, "completion/complete", req.Params, decode.Into[mcp.CompleteResult])
}

// prompt decodes the result of prompts/get.
func (m *Methods) prompt(raw []byte) (*mcp.GetPromptResult, error) {
	p, messages, err := decode.Prompt(raw)
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		content, err := toolresult.Block(message.Content, m.unknown)
		if err != nil {
			return nil, decode.Unclear(err)
		}
		if content != nil {
			p.Messages = append(p.Messages, mcp.PromptMessage{Role: message.Role, Content: content})
		}
	}
	return p, nil
}

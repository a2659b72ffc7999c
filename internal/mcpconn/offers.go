package mcpconn

import (
	"context"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
)

// What a server offers besides tools/call. A method whose request has a cursor
// gives one page. The errors are those of CallTool.

// ListToolsByPage is tools/list.
func (c *Conn) ListToolsByPage(ctx context.Context, req mcp.ListToolsRequest) (*mcp.ListToolsResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.ListToolsResult, error) { return c.mcp.ListToolsByPage(ctx, req) })
}

// ListResourcesByPage is resources/list.
func (c *Conn) ListResourcesByPage(ctx context.Context, req mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.ListResourcesResult, error) {
		return c.mcp.ListResourcesByPage(ctx, req)
	})
}

// ListResourceTemplatesByPage is resources/templates/list.
func (c *Conn) ListResourceTemplatesByPage(ctx context.Context, req mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.ListResourceTemplatesResult, error) {
		return c.mcp.ListResourceTemplatesByPage(ctx, req)
	})
}

// ReadResource is resources/read.
func (c *Conn) ReadResource(ctx context.Context, req mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.ReadResourceResult, error) { return c.mcp.ReadResource(ctx, req) })
}

// ListPromptsByPage is prompts/list.
func (c *Conn) ListPromptsByPage(ctx context.Context, req mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.ListPromptsResult, error) {
		return c.mcp.ListPromptsByPage(ctx, req)
	})
}

// GetPrompt is prompts/get.
func (c *Conn) GetPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.GetPromptResult, error) { return c.mcp.GetPrompt(ctx, req) })
}

// Complete is completion/complete.
func (c *Conn) Complete(ctx context.Context, req mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return rpc(ctx, func(ctx context.Context) (*mcp.CompleteResult, error) { return c.mcp.Complete(ctx, req) })
}

// SetLevel sets the least severity of the log messages that the server sends. On
// a legacy connection it is logging/setLevel; on a modern one every request after
// it carries the level, and nothing is sent now.
func (c *Conn) SetLevel(ctx context.Context, req mcp.SetLevelRequest) error {
	err := c.told(ctx, func(ctx context.Context) error {
		return c.mcp.SetLevel(ctx, req)
	})
	for m := c.meta.Load(); err == nil && m != nil; m = c.meta.Load() {
		fields := maps.Clone(m.fields)
		fields[mcp.MetaKeyLogLevel] = req.Params.Level
		if c.meta.CompareAndSwap(m, newRequestMeta(fields)) {
			break
		}
	}
	return err
}

// Subscribe asks to be told, as notifications/resources/updated, when a resource
// changes. On a legacy connection it is resources/subscribe; on a modern one a
// stream of its own, and Subscribe returns once the server has acknowledged it.
// A second one for the same resource does nothing there.
func (c *Conn) Subscribe(ctx context.Context, req mcp.SubscribeRequest) error {
	if c.isModern() {
		return c.subscribe(ctx, req.Params.URI)
	}
	return c.told(ctx, func(ctx context.Context) error {
		return c.mcp.Subscribe(ctx, req)
	})
}

// Unsubscribe ends what Subscribe began.
func (c *Conn) Unsubscribe(ctx context.Context, req mcp.UnsubscribeRequest) error {
	if c.isModern() {
		return c.unsubscribe(ctx, req.Params.URI)
	}
	return c.told(ctx, func(ctx context.Context) error {
		return c.mcp.Unsubscribe(ctx, req)
	})
}

// told is rpc for a request whose result says nothing.
func (c *Conn) told(ctx context.Context, request func(context.Context) error) error {
	_, err := rpc(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, request(ctx) })
	return err
}

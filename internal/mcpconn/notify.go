package mcpconn

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/decode"
	"github.com/mcppool/mcppool/internal/offers"
)

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.child.Notify(ctx, method, c.meta.Load().In(params))
}

// notified is called with the notifications of the server, in order.
func (c *Conn) notified(method string, params json.RawMessage) {
	switch method {
	case string(mcp.MethodNotificationProgress):
		c.progress.Deliver(params)
		return
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		c.streams.Acknowledged(params)
	}
	if h := c.cfg.Handlers.Notification; h != nil {
		h(decode.Notification(method, params))
	}
}

// watchTools has a modern server tell when its tools change, if it can and somebody
// is there to hear it.
func (c *Conn) watchTools() {
	tools := c.info.Capabilities.Tools
	if h := c.cfg.Handlers.Notification; h != nil && tools != nil && tools.ListChanged {
		c.streams.WatchTools(func() { c.child.Emit(mcp.MethodNotificationToolsListChanged) })
	}
}

// listen is one subscriptions/listen.
func (c *Conn) listen(ctx context.Context, filter mcp.SubscriptionFilter, sent func(id string)) error {
	params, err := offers.Params(map[string]any{"notifications": filter})
	if err != nil {
		return err
	}
	return c.child.Listen(ctx, string(mcp.MethodSubscriptionsListen), c.meta.Load().In(params), func(id int64) {
		sent(strconv.FormatInt(id, 10))
	})
}

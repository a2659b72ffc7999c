package mcppool

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
)

// Call is one call of a tool.
type Call struct {
	// Tool is the tool's name. Required.
	Tool string
	// Args are the arguments: whatever encodes to a JSON object, such as a map,
	// a struct or a json.RawMessage. Nil is sent as {}. A RawMessage goes out
	// digit by digit as it is, apart from line breaks between its tokens.
	Args any
	// Meta is sent as the request's _meta, for example a trace context. Nil
	// sends none but what the protocol asks for.
	Meta *mcp.Meta
	// Scope names whose state the session holds, usually from [Scope]. Empty
	// means that no state is kept: the call gets a session of its own, which
	// ends with it.
	Scope string
	// Check reports whether srv is still what the caller's configuration says.
	// It is asked after a connect and right before the call is sent; when it
	// says no, or panics, the call fails with [ErrServerClosed] and its session
	// is closed. It may be called from several goroutines at once, must not
	// block, and must not call the pool. Nil means yes.
	Check func() bool
	// OnProgress gets the progress notifications of this call, in order, all of
	// them before the call returns. It runs on the connection's notification
	// goroutine and may call the pool, though not with the same scope and
	// server, where it is this call's turn. It needs a client that passes
	// notifications on, as the default one does.
	OnProgress func(mcp.ProgressNotification)
}

// request makes the request of a call. Arguments is what the caller gave, for
// clients that look into it; RawArguments is what goes over the wire.
func (c *Call) request() (mcp.CallToolRequest, error) {
	var req mcp.CallToolRequest
	if strings.TrimSpace(c.Tool) == "" {
		return req, &ConfigError{Field: "Call.Tool", Reason: "is empty"}
	}
	raw, err := encode.Object(c.Args)
	if err != nil {
		return req, &ConfigError{Field: "Call.Args", Reason: err.Error()}
	}
	req.Params.Name = c.Tool
	req.Params.Arguments = c.Args
	req.Params.RawArguments = raw
	req.Params.Meta = c.Meta
	if len(raw) == len("{}") {
		req.Params.Arguments = emptyObject
	}
	return req, nil
}

// emptyObject is what a client sees in Arguments for nil: mcp-go's own client
// sends a nil map as null, which servers refuse.
var emptyObject any = json.RawMessage("{}")

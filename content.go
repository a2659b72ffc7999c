package mcppool

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// UnknownContent is a block of a result whose type mcp-go doesn't know, kept as
// the server sent it.
type UnknownContent struct {
	mcp.Content `json:"-"` // nil; it makes this a Content
	Type        string
	Raw         json.RawMessage // the whole block
}

// MarshalJSON gives the block as it came.
func (c UnknownContent) MarshalJSON() ([]byte, error) { return c.Raw, nil }

func unknownContent(typ string, raw json.RawMessage) mcp.Content {
	return UnknownContent{Type: typ, Raw: raw}
}

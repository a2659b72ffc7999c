package toolschema_test

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/toolbox"
	"github.com/mcppool/mcppool/toolbox/toolschema"
)

func Example() {
	var v toolschema.Validator
	opts := &toolbox.Options{Validate: v.Validate}

	tool := mcp.NewTool("search", mcp.WithString("query", mcp.Required()), mcp.WithNumber("limit", mcp.Max(100)))
	fmt.Println(opts.Validate(&tool, json.RawMessage(`{"q": "leak", "limit": 1000}`)))
	// Output:
	// at '/limit': maximum: got 1,000, want 100; missing property 'query'
}

package mcppool

import _ "github.com/mark3labs/mcp-go/mcp"

package mcppool

import (
	_ "github.com/mark3labs/mcp-go/client"
	_ "github.com/mark3labs/mcp-go/server"
	_ "github.com/stretchr/testify/require"
	_ "go.uber.org/goleak"
)

module github.com/mcppool/mcppool/internal/interop

go 1.25.5

require (
	github.com/mark3labs/mcp-go v1.2.1
	github.com/mcppool/mcppool v0.1.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

// Package mcppool keeps stdio MCP servers alive between tool calls: one session
// per (server, conversation), borrowed for a call under the caller's deadline.
package mcppool

// Package toolbox presents many MCP servers as one set of tools for an agent
// loop: [Box.Tools] lists them under names that model APIs accept, and
// [Box.Dispatch] runs whatever the model called, in the session that belongs to
// the conversation, and answers with text for the model.
//
// Which servers there are is a [Catalog]'s to say: a fixed set ([Static]),
// mcpServers configuration files ([LoadConfig], [WatchConfig]), or the caller's
// own database.
package toolbox

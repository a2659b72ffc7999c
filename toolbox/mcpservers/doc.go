// Package mcpservers reads the files in which hosts of MCP servers (Claude,
// Cursor, VS Code, Gemini CLI, Codex, Goose and others) keep them, as JSON with
// comments, TOML or YAML, and makes a [mcppool.Server] of each.
//
// [Read] and [Parse] read one file, [Load] several, and a [Watcher] follows
// them. [Config.Catalog] and [WatchCatalog] make a [toolbox.Catalog] of them. One bad entry costs one server: it is an [Entry] with an Err that says
// file, line, server, field and what to write instead. What a file restricts is
// obeyed, or its server is refused: a server that is switched off, a list of
// tools, a sandbox. Errors and warnings hold names, never values.
//
// What each field of each host means here is in the package's README.
package mcpservers

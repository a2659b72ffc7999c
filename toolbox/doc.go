// Package toolbox presents many MCP servers as one set of tools for an agent
// loop: [Box.ToolsFor] lists them in the form that model APIs accept, and
// [Box.Dispatch] runs whatever the model called, in the session that belongs to
// the conversation, and answers with text for the model.
//
// Which servers there are is a [Catalog]'s to say: a fixed set
// ([NewStaticCatalog]), the configuration files of hosts (the module
// toolbox/mcpservers), or the caller's own database. It is asked for every call, so that an edit counts at once, and
// again right before the call is sent.
//
// Every call ends with an [Output] whose text the model can be given as it is.
// It begins with "Error: " when the call failed, and holds neither the
// configuration nor what a server wrote to stderr; those are in Output.Err, for
// logs.
//
// Tools are listed in the background: [Box.Close] ends that, before the pool's Close.
package toolbox

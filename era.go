package mcppool

// Protocol is an era of the protocol: how a connection begins.
type Protocol string

const (
	// ProtocolAuto asks the server which it speaks, and remembers.
	ProtocolAuto Protocol = ""
	// ProtocolLegacy begins with initialize: revisions up to 2025-11-25.
	ProtocolLegacy Protocol = "legacy"
	// ProtocolModern has no handshake; every request carries the version:
	// revision 2026-07-28 and later.
	ProtocolModern Protocol = "modern"
)

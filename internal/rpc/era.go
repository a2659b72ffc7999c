package rpc

// Era is a way for a connection to begin.
type Era string

// The eras.
const (
	Auto   Era = ""       // the server is asked
	Legacy Era = "legacy" // it begins with initialize: revisions up to 2025-11-25
	Modern Era = "modern" // every request carries the version: 2026-07-28 and later
)

// Package interop tries the pool with real servers: those of the official SDKs, and
// those that people use. The servers are described in servers_test.go, what is tried
// with each in the files checks_test.go and rough_test.go, and what came out is the table
// of docs/servers.md.
//
//	MCPPOOL_INTEROP=short go test .           the gate's: some servers
//	MCPPOOL_INTEROP=full go test -timeout 60m . all of them
//	MCPPOOL_INTEROP=full go test -timeout 60m -update . and docs/servers.md anew
//
// The servers come from npm, at the versions of npm/package-lock.json, and from the Go
// module proxy, into the user's cache folder. It is a module of its own for what that needs.
package interop

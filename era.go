package mcppool

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

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

// How a server of unknown era is asked. server/discover comes first, as the
// revision 2026-07-28 has it. A server that answers with an error is of the old
// era and goes on with initialize. One that exits on it or stays silent is
// started again, since some older servers take no request before initialize.
const (
	// probeTime bounds the silence of a server that is asked; it is half of what
	// is left when that is less.
	probeTime = 1500 * time.Millisecond
	// maxEras bounds the memory of eras; beyond it any one is forgotten.
	maxEras = 1024
)

// eras remembers which era a command speaks, by digest.
type eras struct {
	mu sync.Mutex // protects the fields below
	of map[digest]Protocol
}

func (e *eras) get(command digest) Protocol {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[command]
}

func (e *eras) set(command digest, era Protocol) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if era == ProtocolAuto {
		delete(e.of, command)
		return
	}
	if e.of == nil {
		e.of = make(map[digest]Protocol)
	}
	if _, known := e.of[command]; !known && len(e.of) >= maxEras {
		for any := range e.of {
			delete(e.of, any)
			break
		}
	}
	e.of[command] = era
}

// isModernAnswer tells whether the answer to server/discover is that of a server
// which speaks a modern revision: some old ones answer anything with an empty
// result.
func isModernAnswer(result json.RawMessage) bool {
	var discovered struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(result, &discovered) != nil {
		return false
	}
	return slices.ContainsFunc(discovered.SupportedVersions, mcp.IsModernProtocol)
}

package mcpconn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/encode"
)

// Era is a way for a connection to begin.
type Era string

// The eras.
const (
	Auto   Era = ""       // the server is asked
	Legacy Era = "legacy" // it begins with initialize: revisions up to 2025-11-25
	Modern Era = "modern" // every request carries the version: 2026-07-28 and later
)

// How a server of unknown era is asked. server/discover comes first, as the
// revision 2026-07-28 has it. A server that answers with an error is of the old
// era and goes on with initialize. One that exits on it, or has read it and stays
// silent, is started again, since some older servers take no request before
// initialize.
//
// probeTime bounds the silence of a server that is asked; it is half of what is
// left when that is less. A variable for the tests alone.
var probeTime = 1500 * time.Millisecond

// maxEras bounds the memory of eras; beyond it any one is forgotten.
const maxEras = 1024

var errNotModern = errors.New("server speaks no modern revision of the protocol")

// Eras remembers which era a command speaks, by digest. Its zero value is ready,
// and may be used from any goroutine.
type Eras struct {
	mu sync.Mutex // protects the fields below
	of map[[16]byte]Era
}

// get gives Auto for what isn't remembered.
func (e *Eras) get(command [16]byte) Era {
	if e == nil {
		return Auto
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[command]
}

// set remembers an era, and forgets for Auto.
func (e *Eras) set(command [16]byte, era Era) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if era == Auto {
		delete(e.of, command)
		return
	}
	if e.of == nil {
		e.of = make(map[[16]byte]Era)
	}
	if _, known := e.of[command]; !known && len(e.of) >= maxEras {
		for other := range e.of {
			delete(e.of, other)
			break
		}
	}
	e.of[command] = era
}

// silence is how long a server may be silent on a question that it may not know.
func (cfg *Config) silence(ctx context.Context) time.Duration {
	d := probeTime
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	if left := time.Until(cfg.Hurry); left > 0 { // else whoever was in a hurry has left
		d = min(d, left/2)
	}
	return d
}

// isModernAnswer tells whether the answer to server/discover is that of a server
// which speaks a modern revision.
func isModernAnswer(answer *transport.JSONRPCResponse) bool {
	if answer.Error != nil {
		var unsupported mcp.UnsupportedProtocolVersionError
		return errors.As(answer.Error.AsError(), &unsupported) &&
			slices.ContainsFunc(unsupported.Supported, mcp.IsModernProtocol)
	}
	// Some old servers answer anything with an empty result.
	var discovered struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	return json.Unmarshal(answer.Result, &discovered) == nil &&
		slices.ContainsFunc(discovered.SupportedVersions, mcp.IsModernProtocol)
}

// requestMeta is what every request of a modern connection carries, see
// https://modelcontextprotocol.io/specification/2026-07-28/basic. It never
// changes.
type requestMeta struct {
	fields map[string]any
	text   json.RawMessage
}

func newRequestMeta(fields map[string]any) *requestMeta {
	text, err := encode.JSON(fields)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return &requestMeta{fields, text}
}

// metaOf is the requestMeta of a revision.
func (cfg *Config) metaOf(version string) *requestMeta {
	var caps mcp.ClientCapabilities
	if cfg.Handlers.Sampling != nil {
		caps.Sampling = &mcp.SamplingCapability{}
	}
	if cfg.Handlers.Elicitation != nil {
		caps.Elicitation = &mcp.ElicitationCapability{}
	}
	if cfg.Handlers.Roots != nil {
		caps.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	return newRequestMeta(map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         cfg.ClientInfo,
		mcp.MetaKeyClientCapabilities: caps,
	})
}

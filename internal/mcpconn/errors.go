package mcpconn

import (
	"encoding/json"
	"errors"
	"net/url"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/stdio"
)

// RPCError is the JSON-RPC error that the server answered with.
type RPCError = stdio.Error

// NotSentError says that nothing of a request went out; Err is why.
type NotSentError = stdio.NotSentError

// ConfigError is bad input; nothing was started or sent because of it.
type ConfigError struct {
	Field  string // Dir or Meta
	Reason string // what is wrong with it, as a verb of the field
}

func (e *ConfigError) Error() string { return e.Field + " " + e.Reason }

// StartError says that there is no connection.
type StartError struct {
	Phase  string // what failed: "start" (no process), "connect" (no handshake)
	Exit   string // how the process ended; empty when it didn't end by itself
	Stderr string // what it wrote last
	Err    error
}

func (e *StartError) Error() string { return e.Phase + ": " + e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// IsLost tells mcp-go's report of a broken transport from an error of a server
// that is alive.
func IsLost(err error) bool {
	var e *transport.Error
	return errors.As(err, &e) || errors.Is(err, transport.ErrTransportClosed)
}

// plain takes the URL out of an error, which net/http puts there.
func plain(err error) error {
	var web *url.Error
	if errors.As(err, &web) {
		return web.Err
	}
	return err
}

func rpcError(e *mcp.JSONRPCErrorDetails) *RPCError {
	err := &RPCError{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		err.Data, _ = json.Marshal(e.Data) // it was decoded from JSON
	}
	return err
}

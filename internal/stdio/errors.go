package stdio

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/proc"
)

// Why a connection was lost: the Reason of a [DeadError].
var (
	ErrClosed     = errors.New("connection closed")
	ErrKilled     = errors.New("server killed")
	ErrExited     = errors.New("server exited")
	ErrEOF        = errors.New("server closed its stdout")
	ErrBrokenPipe = errors.New("server closed its stdin")
	ErrStalled    = errors.New("server stopped reading in the middle of a message")
	ErrTooLong    = errors.New("message of the server exceeds the limit")
)

// ErrHandlerRunning is what [Conn.Close] returns when everything of the server
// is gone and a handler of the host still runs.
var ErrHandlerRunning = errors.New("a handler has not returned")

// DeadError says that the connection is lost for good. It unwraps to its
// Reason and to mcp-go's transport.ErrTransportClosed.
type DeadError struct {
	Reason     error     // one of this package's sentinels, or an I/O error
	Exited     bool      // Exit is known
	Exit       proc.Exit // how the server's process ended
	StderrTail string    // what it said last; may hold secrets, so it isn't part of the text
}

func (e *DeadError) Error() string {
	if e.Exited && errors.Is(e.Reason, ErrExited) {
		return fmt.Sprintf("%v: %v", e.Reason, e.Exit)
	}
	return e.Reason.Error()
}

func (e *DeadError) Unwrap() []error {
	return []error{e.Reason, transport.ErrTransportClosed}
}

// NotSentError says that not one byte of the request went to the server.
// Err is the end of the caller's ctx, the error of its Gate, or a [*DeadError].
type NotSentError struct{ Err error }

func (e *NotSentError) Error() string { return "not sent: " + e.Err.Error() }
func (e *NotSentError) Unwrap() error { return e.Err }

// Error is a JSON-RPC error: the server's answer to a call, or a handler's
// answer to the server.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil when there is none
}

func (e *Error) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message)
}

// decodeError reads the error member of an answer, as lenient as mcp-go is: it
// may be a bare string. What is neither keeps its text.
func decodeError(raw []byte) *Error {
	var obj struct {
		Code    float64         `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &obj) == nil {
		return &Error{Code: int(obj.Code), Message: obj.Message, Data: obj.Data}
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &Error{Code: mcp.INTERNAL_ERROR, Message: text}
	}
	return &Error{Code: mcp.INTERNAL_ERROR, Message: string(cut(raw, maxJunk))}
}

// cut returns at most n bytes of b.
func cut(b []byte, n int) []byte {
	return b[:min(n, len(b))]
}

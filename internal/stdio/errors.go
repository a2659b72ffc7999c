package stdio

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/rpc"
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

// DeadError says that the connection is lost for good. It unwraps to its Reason
// and to [rpc.ErrLost].
type DeadError struct {
	Reason     error     // one of this package's sentinels, or an I/O error
	Exited     bool      // Exit is known
	Exit       proc.Exit // how the server's process ended
	StderrTail string    // what it wrote last; may hold secrets, so it isn't part of the text
	StdoutTail string    // the last of its stdout that is no message; likewise
}

func (e *DeadError) Error() string {
	if e.Exited && errors.Is(e.Reason, ErrExited) {
		return fmt.Sprintf("%v: %v", e.Reason, e.Exit)
	}
	return e.Reason.Error()
}

func (e *DeadError) Unwrap() []error { return []error{e.Reason, rpc.ErrLost} }

// The errors of requests; see the types.
type (
	Error        = rpc.Error
	NotSentError = rpc.NotSentError
)

// decodeError reads the error member of an answer, which with some
// servers is a bare string. What is neither keeps its text.
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
		return &Error{Code: rpc.CodeInternalError, Message: text}
	}
	return &Error{Code: rpc.CodeInternalError, Message: string(cut(raw, maxJunk))}
}

// cut returns at most n bytes of b.
func cut(b []byte, n int) []byte {
	return b[:min(n, len(b))]
}

package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The codes of JSON-RPC that this project sends or looks at, see
// https://www.jsonrpc.org/specification#error_object.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInternalError  = -32603
)

// ErrLost is part of every error that reports the loss of a connection.
var ErrLost = errors.New("connection lost")

// Error is a JSON-RPC error: the server's answer to a request, or a handler's
// answer to the server.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // as it came; nil when there is none
}

func (e *Error) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message)
}

// NotSentError reports that not one byte of the request went to the server.
// Err is the end of the caller's ctx, the error of its Gate, or the loss of the
// connection.
type NotSentError struct{ Err error }

func (e *NotSentError) Error() string { return "not sent: " + e.Err.Error() }
func (e *NotSentError) Unwrap() error { return e.Err }

// AnswerError reports that an answer arrived and can't be understood. The server
// lives, and has done what it was asked.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string {
	return "the server's answer can't be understood: " + e.Reason
}

// StatusError reports that a server at a URL answered with an HTTP status that is no
// success. It is alive, and it isn't known whether it has done what it was asked.
type StatusError struct {
	Code int
	Name string // such as "Not Found"; empty where the code has none
	Text string // the first line of the answer, cut; empty for none
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.Code, e.Name))
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// HandlerError reports that a handler of the host failed while a call waited for
// it. It holds the text of the handler's error and not the error, whose class
// would say something of another call.
type HandlerError struct {
	Method string // that the server asked for; empty when it isn't known which of several
	Reason string
}

func (e *HandlerError) Error() string {
	if e.Method == "" {
		return "the server asked for input: " + e.Reason
	}
	return "the server asked for " + e.Method + ": " + e.Reason
}

// ConfigError is bad input; nothing was started or sent because of it.
type ConfigError struct {
	Field  string // Dir or Meta
	Reason string // what is wrong with it, as a verb of the field
}

func (e *ConfigError) Error() string { return e.Field + " " + e.Reason }

// StartError reports that there is no connection.
type StartError struct {
	Phase  string // what failed: "start" (no process), "connect" (no handshake)
	Exit   string // how the process ended; empty when it didn't end by itself
	Stderr string // what it wrote there last
	Stdout string // the last of what it wrote there that is no message
	Err    error
}

func (e *StartError) Error() string { return e.Phase + ": " + e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

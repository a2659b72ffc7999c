// Package frame turns one line of a server's stdout into a JSON-RPC message,
// and messages into lines for its stdin. It finds the members of a message in
// one scan and leaves the payloads undecoded.
package frame

import (
	"bytes"
	"errors"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Kind is what a line turned out to be.
type Kind uint8

// The kinds of lines. Everything that isn't JSON-RPC is Junk.
const (
	Junk Kind = iota
	Response
	Request
	Notification
)

func (k Kind) String() string {
	switch k {
	case Junk:
		return "junk"
	case Response:
		return "response"
	case Request:
		return "request"
	case Notification:
		return "notification"
	}
	panic("bug: unknown kind of message")
}

// Message is one JSON-RPC message. Its slices alias the line that it was
// parsed from, so they are valid for as long as that is.
type Message struct {
	Kind   Kind
	ID     ID
	RawID  []byte // the id as it stood on the line, to echo it in an answer; nil when missing
	Method string // of a Request or Notification

	// Raw JSON; nil when missing, and Error also when it is null. A Response
	// has exactly one of Result and Error.
	Params, Result, Error []byte

	// Long is the longest string in Result, for who scans that again.
	Long jsonscan.Long
}

// Why a line is Junk.
var (
	errBlank      = errors.New("blank line")
	errBatch      = errors.New("a JSON array, not a message")
	errNotObject  = errors.New("not a JSON object")
	errNotJSONRPC = errors.New("a JSON object, but no JSON-RPC message")
)

// noOutcome stands in for the error object of a response without result and error.
var noOutcome = []byte(`{"code":-32603,"message":"the server's response has neither result nor error"}`)

// Parse parses one line. The error says why Kind is Junk, for a log; it is nil
// for every other kind. It may quote nothing of the line.
//
// It is as strict as encoding/json but for control characters inside strings,
// which it takes as if they were escaped. Of a member that occurs twice the
// last one counts. A request whose id is null, which MCP forbids and nobody
// could answer, is a Notification. Requests and notifications need a "jsonrpc" member, since
// servers write JSON log lines with a "method" in them; a response passes
// without one if it has an integer id and a result or an error object.
func Parse(line []byte) (Message, error) {
	line = Trim(line)
	switch {
	case len(line) == 0:
		return Message{}, errBlank
	case line[0] == '[':
		return Message{}, errBatch
	case line[0] != '{':
		return Message{}, errNotObject
	}
	m, err := parse(line)
	if err != nil {
		if fixed := jsonscan.Repair(line); fixed != nil {
			m, err = parse(fixed)
		}
		if err != nil {
			return Message{}, err
		}
	}
	if m.Kind == Junk {
		return Message{}, errNotJSONRPC
	}
	return m, nil
}

func parse(line []byte) (Message, error) {
	var m Message
	var jsonrpc, method bool
	s := jsonscan.New(line)
	s.Enter('{')
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch {
		case key.Is("jsonrpc"):
			jsonrpc = true
			s.Skip()
		case key.Is("id"):
			m.RawID = s.Skip()
		case key.Is("method"):
			if method = s.Peek() == '"'; method {
				m.Method = methodName(s.String())
			} else {
				s.Skip()
			}
		case key.Is("params"):
			m.Params = s.Skip()
		case key.Is("result"):
			m.Result, m.Long = s.SkipLong()
		case key.Is("error"):
			m.Error = s.Skip()
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return Message{}, err
	}
	m.ID = ParseID(m.RawID)
	m.classify(jsonrpc, method)
	return m, nil
}

// classify sets the kind and clears what that kind doesn't have.
func (m *Message) classify(jsonrpc, method bool) {
	if string(m.Error) == "null" {
		m.Error = nil
	}
	if m.Error != nil {
		m.Result = nil // as in JSON-RPC 1.0, where the other one of both is null
	}
	outcome := m.Result != nil || m.Error != nil
	answered := m.ID.Kind != Missing && m.ID.Kind != Null
	switch {
	case method && jsonrpc && !outcome:
		m.Kind = Notification
		if answered {
			m.Kind = Request
		}
		return
	case method && !outcome:
		m.Kind = Junk
	case outcome && jsonrpc:
		// A result without an id answers nothing; an error without one says that
		// the server couldn't read a request (https://www.jsonrpc.org/specification#response_object).
		if answered || m.Error != nil {
			m.Kind = Response
		}
	case outcome:
		if m.ID.Kind == Integer && (m.Result != nil || m.Error[0] == '{') {
			m.Kind = Response
		}
	case jsonrpc && answered:
		m.Kind = Response
		m.Error = noOutcome
	}
	m.Method, m.Params = "", nil
}

// methodName returns the string's value, without allocation for the methods
// that servers use.
func methodName(s jsonscan.String) string {
	switch string(s.Body) {
	case "ping":
		return "ping"
	case "roots/list":
		return "roots/list"
	case "sampling/createMessage":
		return "sampling/createMessage"
	case "elicitation/create":
		return "elicitation/create"
	case "notifications/progress":
		return "notifications/progress"
	case "notifications/message":
		return "notifications/message"
	case "notifications/cancelled":
		return "notifications/cancelled"
	case "notifications/tools/list_changed":
		return "notifications/tools/list_changed"
	case "notifications/resources/list_changed":
		return "notifications/resources/list_changed"
	case "notifications/resources/updated":
		return "notifications/resources/updated"
	case "notifications/prompts/list_changed":
		return "notifications/prompts/list_changed"
	case "notifications/elicitation/complete":
		return "notifications/elicitation/complete"
	case "notifications/tasks/status":
		return "notifications/tasks/status"
	}
	return s.Decode()
}

var bom = []byte("\xef\xbb\xbf")

// Trim returns line without the byte order mark in front of it, and without
// spaces, tabs and line ends around it.
func Trim(line []byte) []byte {
	line = bytes.TrimPrefix(line, bom)
	for len(line) > 0 && isSpace(line[0]) {
		line = line[1:]
	}
	for len(line) > 0 && isSpace(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

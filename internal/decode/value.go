package decode

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Value decodes valid JSON as encoding/json decodes into an any, but that a number
// which a float64 would change is a json.Number.
func Value(raw []byte) any {
	s := jsonscan.New(raw)
	return valueOf(&s, number)
}

// Any decodes valid JSON as encoding/json decodes into an any. A number that no float64
// holds is nil, as there, but without the error.
func Any(raw []byte) any {
	s := jsonscan.New(raw)
	return valueOf(&s, float)
}

func valueOf(s *jsonscan.Scanner, number func(text []byte) any) any {
	switch s.Peek() {
	case '{':
		return objectOf(s, number)
	case '[':
		a := []any{}
		s.Enter('[')
		for s.Elem() {
			a = append(a, valueOf(s, number))
		}
		return a
	case '"':
		str := s.String()
		return str.Decode()
	case 't':
		s.Skip()
		return true
	case 'f':
		s.Skip()
		return false
	}
	if raw := s.Skip(); len(raw) > 0 && raw[0] != 'n' {
		return number(raw)
	}
	return nil
}

func objectOf(s *jsonscan.Scanner, number func(text []byte) any) map[string]any {
	m := make(map[string]any)
	s.Enter('{')
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		m[key.Decode()] = valueOf(s, number)
	}
	return m
}

func float(text []byte) any {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return nil
	}
	return f
}

// safeDigits is how many decimal digits every float64 keeps.
const safeDigits = 15

// number is a float64 if that keeps the digits, and else a json.Number.
func number(raw []byte) any {
	text := string(raw)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return json.Number(text)
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	digits := strings.Trim(strings.Replace(mantissa, ".", "", 1), "0")
	switch {
	case f == 0 && digits != "": // it is too small
		return json.Number(text)
	case len(digits) <= safeDigits, strconv.FormatFloat(f, 'f', -1, 64) == text:
		return f
	default:
		return json.Number(text)
	}
}

// Meta decodes a _meta with all digits; [] is an empty one. It returns nil and true
// for null, and false for what is no object.
func Meta(raw []byte) (meta *mcp.Meta, ok bool) {
	s := jsonscan.New(raw)
	switch {
	case s.Peek() == 'n':
		return nil, true
	case s.Peek() == '[' && isEmpty(raw, '['):
		return &mcp.Meta{AdditionalFields: map[string]any{}}, true
	case s.Peek() != '{':
		return nil, false
	}
	fields := objectOf(&s, number)
	meta = &mcp.Meta{ProgressToken: fields["progressToken"], AdditionalFields: fields}
	delete(fields, "progressToken")
	return meta, s.End() == nil
}

// Notification decodes a notification. Params that are no object are left out.
func Notification(method string, params []byte) mcp.JSONRPCNotification {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method = method
	if params == nil || jsonscan.Object(params) != nil {
		return n
	}
	fields, _ := Value(params).(map[string]any)
	n.Params.Meta, _ = fields["_meta"].(map[string]any)
	if n.Params.Meta == nil {
		n.Params.Meta = map[string]any{}
	}
	delete(fields, "_meta")
	n.Params.AdditionalFields = fields
	return n
}

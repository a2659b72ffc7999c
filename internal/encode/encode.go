// Package encode turns values of the host into JSON for a server.
package encode

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

var empty = []byte("{}")

// JSON is json.Marshal without the escaping of <, > and & for HTML, which would
// only make the line longer. An empty or nil map[string]any is {}.
// The result must not be changed.
func JSON(v any) ([]byte, error) {
	if m, ok := v.(map[string]any); ok {
		if len(m) == 0 {
			return empty, nil
		}
		if raw, ok := plain(m); ok {
			return raw, nil
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Object returns v as one line of JSON, which is an object; nil and what encodes to
// null are {}. A json.RawMessage keeps its digits, and loses the line breaks
// between its tokens. The error says what is wrong as a verb of the value, and
// holds nothing of it.
func Object(v any) (json.RawMessage, error) {
	var raw []byte
	switch v := v.(type) {
	case nil:
		return empty, nil
	case json.RawMessage:
		raw = v
	default:
		var err error
		if raw, err = JSON(v); err != nil {
			return nil, errors.New("can't be encoded: " + Reason(err))
		}
		if raw[0] == '{' {
			return raw, nil // encoding/json gives valid JSON on one line, of marshalers too
		}
	}
	if raw == nil || bytes.Equal(raw, []byte("null")) {
		return empty, nil // a nil map or pointer
	}
	if err := jsonscan.Object(raw); err != nil {
		return nil, errors.New("isn't a JSON object: " + err.Error())
	}
	return jsonscan.Line(raw), nil
}

// Reason says why JSON failed and leaves out the values that encoding/json quotes in some errors.
func Reason(err error) string {
	var (
		unsupportedType  *json.UnsupportedTypeError
		unsupportedValue *json.UnsupportedValueError
		marshaler        *json.MarshalerError
	)
	switch {
	case errors.As(err, &unsupportedType):
		return "JSON has no form for the Go type " + unsupportedType.Type.String()
	case errors.As(err, &unsupportedValue):
		return "JSON has no form for a value in it (an infinite or NaN number, or a cycle)"
	case errors.As(err, &marshaler):
		return "the MarshalJSON or MarshalText of " + marshaler.Type.String() + " failed"
	default:
		return "encoding/json refused it"
	}
}

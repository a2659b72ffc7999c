// Package encode turns values of the host into JSON for a server.
package encode

import (
	"bytes"
	"encoding/json"
	"errors"
)

var empty = []byte("{}")

// JSON is json.Marshal without the escaping of <, > and & for HTML, which would
// only make the line longer. An empty or nil map[string]any is {}.
// The result must not be changed.
func JSON(v any) ([]byte, error) {
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return empty, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
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

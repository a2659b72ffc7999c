// Package decode reads what servers send, but for the results of tools, which
// internal/toolresult reads. It is tolerant where what is meant is certain, such as
// PHP's [] for an empty object, and exact in what it hands on: an entry of a list
// that can't be understood hides no other, schemas keep their bytes, and numbers
// their digits. What stays unclear is an [rpc.AnswerError].
//
// Of what a server adds to the protocol the types of mcp-go carry the _meta, the
// extensions and experimental capabilities, and the schemas; further members of a
// result, of a tool or of another entry they have no place for.
package decode

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/mcppool/mcppool/internal/jsonscan"
	"github.com/mcppool/mcppool/internal/rpc"
)

// Into decodes an object as encoding/json does, and where that fails once more with
// what is certain mended.
func Into[T any](raw []byte) (*T, error) {
	v := new(T)
	if err := intoObject(raw, v); err != nil {
		v = new(T)
		if err := intoObject(Mend[T](raw), v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func intoObject(raw []byte, v any) error {
	if err := jsonscan.Object(raw); err != nil {
		return Unclear(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return Unclear(err)
	}
	return nil
}

// Unclear makes an error of decoding one that a reader understands who knows the
// protocol but not Go. It quotes nothing of what was decoded.
func Unclear(err error) error {
	var (
		typed   *json.UnmarshalTypeError
		already *rpc.AnswerError
		syntax  *jsonscan.SyntaxError
	)
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &typed) && typed.Field != "":
		return &rpc.AnswerError{Reason: typed.Field + " is " + article(typed.Value) + ", not " + wanted(typed.Type)}
	case errors.As(err, &typed):
		return &rpc.AnswerError{Reason: "there is " + article(typed.Value) + " in place of " + wanted(typed.Type)}
	case errors.As(err, &syntax):
		return &rpc.AnswerError{Reason: syntax.Error()}
	default: // the text may quote what the server sent, which could be a secret in disguise
		return &rpc.AnswerError{Reason: "there is something in it that isn't known"}
	}
}

func article(kind string) string {
	switch kind {
	case "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// wanted is what JSON has for a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	default:
		return "a number that fits"
	}
}

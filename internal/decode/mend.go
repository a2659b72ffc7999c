package decode

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Mend returns raw with what is certainly meant in place of what T has no room for:
//
//	[] for an object, which is what PHP makes of an empty one, is {}
//	{} for an array is [], and a string for an array of strings has it in it
//	true for an optional object is {}, false is null
//	a number or a boolean for a string is its text
//	a string of a boolean or of a number, for one, is that
//
// What T leaves open (interfaces, raw JSON, types that decode themselves) stays as
// it is, and so does what isn't JSON.
func Mend[T any](raw []byte) []byte { return mend(raw, reflect.TypeFor[T]()) }

var (
	rawMessage  = reflect.TypeFor[json.RawMessage]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func mend(raw []byte, typ reflect.Type) []byte {
	optional := typ.Kind() == reflect.Pointer
	if optional {
		typ = typ.Elem()
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || typ == rawMessage {
		return raw
	}
	switch typ.Kind() {
	case reflect.Struct, reflect.Map:
		return mendObject(raw, typ, optional)
	case reflect.Slice:
		return mendArray(raw, typ)
	case reflect.String:
		if c := raw[0]; c == '-' || '0' <= c && c <= '9' || c == 't' || c == 'f' {
			return []byte(`"` + string(raw) + `"`)
		}
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return unquoted(raw, typ)
	default:
	}
	return raw
}

func mendObject(raw []byte, typ reflect.Type, optional bool) []byte {
	switch {
	case isEmpty(raw, '['), optional && string(raw) == "true":
		return []byte("{}")
	case optional && string(raw) == "false":
		return []byte("null")
	case raw[0] != '{' || typ.Kind() == reflect.Map || reflect.PointerTo(typ).Implements(unmarshaler):
		return raw
	}
	fields := fieldsOf(typ)
	out := []byte{'{'}
	s := jsonscan.New(raw)
	s.Enter('{')
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key.Body...), `":`...)
		value := s.Skip()
		if field, ok := fields[strings.ToLower(key.Decode())]; ok {
			value = mend(value, field)
		}
		out = append(out, value...)
	}
	if s.End() != nil {
		return raw
	}
	return append(out, '}')
}

// fieldsOf returns the types of a struct's members by their names, in lower case.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			if name == "" {
				name = f.Name
			}
			fields[strings.ToLower(name)] = f.Type
		}
	}
	return fields
}

func mendArray(raw []byte, typ reflect.Type) []byte {
	switch {
	case isEmpty(raw, '{'):
		return []byte("[]")
	case raw[0] == '"' && typ.Elem().Kind() == reflect.String:
		return append(append([]byte{'['}, raw...), ']')
	case raw[0] != '[':
		return raw
	}
	out := []byte{'['}
	s := jsonscan.New(raw)
	s.Enter('[')
	for s.Elem() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, mend(s.Skip(), typ.Elem())...)
	}
	if s.End() != nil {
		return raw
	}
	return append(out, ']')
}

// unquoted takes the quotes off a boolean or a number.
func unquoted(raw []byte, typ reflect.Type) []byte {
	if raw[0] != '"' || len(raw) < 3 {
		return raw
	}
	inner := raw[1 : len(raw)-1]
	if json.Unmarshal(inner, reflect.New(typ).Interface()) != nil {
		return raw
	}
	return inner
}

// isEmpty reports whether raw is an empty array or object, by its opening byte.
func isEmpty(raw []byte, open byte) bool {
	return len(raw) >= 2 && raw[0] == open && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

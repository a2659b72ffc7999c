package toolresult

import (
	"strconv"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// decodeAny decodes a valid value as encoding/json decodes into an any. A
// number that no float64 holds becomes nil, as there, but without the error.
func decodeAny(raw []byte) any {
	s := jsonscan.New(raw)
	return anyOf(&s)
}

func anyOf(s *jsonscan.Scanner) any {
	switch s.Peek() {
	case '{':
		m := make(map[string]any)
		s.Enter('{')
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			m[key.Decode()] = anyOf(s)
		}
		return m
	case '[':
		a := []any{}
		s.Enter('[')
		for s.Elem() {
			a = append(a, anyOf(s))
		}
		return a
	case '"':
		return decodeString(s)
	case 't':
		s.Skip()
		return true
	case 'f':
		s.Skip()
		return false
	}
	if raw := s.Skip(); len(raw) > 0 && raw[0] != 'n' {
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil {
			return f
		}
	}
	return nil
}

package encode

import (
	"math"
	"slices"
	"strconv"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// maxPlainDepth bounds the nesting of what is encoded here; deeper values, and so
// cycles, are encoding/json's.
const maxPlainDepth = 32

// stackKeys is how many keys of an object are sorted without an allocation.
const stackKeys = 16

// plain encodes what arguments are mostly made of, maps, slices, strings and numbers,
// with one allocation. It returns false for anything else.
func plain(m map[string]any) ([]byte, bool) {
	return appendObject(make([]byte, 0, sizeOfObject(m, 0)), m, 0)
}

// sizeOfObject is about how many bytes an object takes.
func sizeOfObject(m map[string]any, depth int) int {
	size := 2
	for key, v := range m {
		size += len(key) + 4 + sizeOf(v, depth+1)
	}
	return size
}

func sizeOf(v any, depth int) int {
	switch v := v.(type) {
	case string:
		return len(v) + len(v)/32 + 2
	case map[string]any:
		if depth < maxPlainDepth {
			return sizeOfObject(v, depth)
		}
	case []any:
		if depth < maxPlainDepth {
			size := 2
			for _, e := range v {
				size += 1 + sizeOf(e, depth+1)
			}
			return size
		}
	}
	return 8
}

func appendObject(dst []byte, m map[string]any, depth int) ([]byte, bool) {
	var few [stackKeys]string
	keys := few[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, key), ':')
		var ok bool
		if dst, ok = appendPlain(dst, m[key], depth+1); !ok {
			return nil, false
		}
	}
	return append(dst, '}'), true
}

func appendPlain(dst []byte, v any, depth int) (_ []byte, ok bool) {
	if depth > maxPlainDepth {
		return nil, false
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), true
	case string:
		return jsonscan.AppendString(dst, v), true
	case bool:
		return strconv.AppendBool(dst, v), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case float64:
		return appendFloat(dst, v)
	case map[string]any:
		if v == nil {
			return append(dst, "null"...), true
		}
		return appendObject(dst, v, depth)
	case []any:
		return appendArray(dst, v, depth)
	}
	return nil, false
}

func appendArray(dst []byte, a []any, depth int) (_ []byte, ok bool) {
	if a == nil {
		return append(dst, "null"...), true
	}
	dst = append(dst, '[')
	for i, v := range a {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, ok = appendPlain(dst, v, depth+1); !ok {
			return nil, false
		}
	}
	return append(dst, ']'), true
}

// appendFloat appends a number that encoding/json writes without an exponent.
func appendFloat(dst []byte, f float64) ([]byte, bool) {
	if abs := math.Abs(f); f != 0 && !(abs >= 1e-6 && abs < 1e21) {
		return nil, false
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64), true
}

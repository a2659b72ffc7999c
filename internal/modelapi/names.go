package modelapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// A property that an API refuses gets another name: what can be read of its own, and a
// hash of all of it behind. The new name is a function of the old one alone, and the
// same for every API, so that it can be taken back with nothing but the tool's schema.
// A name that merely looks so is renamed as well.
const (
	maxName    = 64
	hashDigits = 8
	hashPart   = len("_") + hashDigits
)

func renamed(name string) string {
	var b strings.Builder
	for i := 0; i < len(name) && b.Len() < maxName-hashPart; i++ {
		switch c := name[i]; {
		case c >= '0' && c <= '9' && b.Len() == 0:
			b.WriteByte('_')
			b.WriteByte(c)
		case isWord(c):
			b.WriteByte(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	readable := strings.TrimRight(b.String(), "_")
	if readable == "" {
		readable = "x"
	}
	sum := sha256.Sum256([]byte(name))
	return readable + "_" + hex.EncodeToString(sum[:hashDigits/2])
}

// isRenamed reports whether a name has the form of those that [renamed] returns.
func isRenamed(name string) bool {
	at := len(name) - hashPart
	return at >= 1 && name[at] == '_' && isHash(name[at+1:])
}

func isHash[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// HasRenamed reports whether arguments, which are valid JSON, may hold properties under
// new names, and so need [Restore].
func HasRenamed(args json.RawMessage) bool {
	if bytes.IndexByte(args, '\\') < 0 && !endsRenamed(args) {
		return false
	}
	found := false
	eachKey(args, func(key string, _, _ int) { found = found || isRenamed(key) })
	return found
}

// endsRenamed reports whether any text ends as new names do. It costs less than reading
// the keys, and nearly all arguments have none.
func endsRenamed(args []byte) bool {
	for from := 0; ; {
		i := bytes.IndexByte(args[from:], '"')
		if i < 0 {
			return false
		}
		at := from + i
		if at > hashPart && args[at-hashPart] == '_' && isHash(args[at-hashDigits:at]) {
			return true
		}
		from = at + 1
	}
}

// Restore returns arguments with the names that the tool's schema has for its
// properties; args itself where none is to be restored. Nothing else of it changes.
func Restore(args, schema json.RawMessage) json.RawMessage {
	names := make(map[string]string)
	collectNames(parse(schema), names)
	if len(names) == 0 {
		return args
	}
	var out []byte
	kept := 0
	eachKey(args, func(key string, from, to int) {
		own, ok := names[key]
		if !ok {
			return
		}
		quoted, _ := json.Marshal(own) // a string always encodes
		out = append(append(out, args[kept:from]...), quoted...)
		kept = to
	})
	if kept == 0 {
		return args
	}
	return append(out, args[kept:]...)
}

// collectNames finds the properties of a schema, at any depth, that have a new name for
// some API.
func collectNames(v any, names map[string]string) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	if props, ok := node["properties"].(map[string]any); ok {
		for name := range props {
			if isRenamed(name) || !isIdentifier(name) {
				names[renamed(name)] = name
			}
		}
	}
	eachSub(node, "", func(sub any, _ string) any {
		collectNames(sub, names)
		return sub
	})
}

// eachKey calls f with each key of the objects in raw, which is valid JSON, and where it
// stands with its quotes.
func eachKey(raw []byte, f func(key string, from, to int)) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		from, escaped := i, false
		for i++; i < len(raw) && raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				escaped = true
				i++
			}
		}
		to := min(i+1, len(raw))
		next := to
		for next < len(raw) && (raw[next] == ' ' || raw[next] == '\n' || raw[next] == '\r' || raw[next] == '\t') {
			next++
		}
		if next >= len(raw) || raw[next] != ':' {
			continue // a value
		}
		key := string(raw[from+1 : to-1])
		if escaped && json.Unmarshal(raw[from:to], &key) != nil {
			continue
		}
		f(key, from, to)
	}
}

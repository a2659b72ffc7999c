package mcpservers

import (
	"bytes"
	"strings"
)

// plainJSON turns JSON with comments and trailing commas, as editors write it,
// into JSON: what JSON doesn't know becomes blanks, so that every offset and
// line stays what it was. JSON comes back as it is. Whether the rest is JSON is
// for its parser to say.
func plainJSON(text []byte) []byte {
	out := bytes.Clone(text)
	if bytes.HasPrefix(out, []byte("\xef\xbb\xbf")) {
		blank(out[:3])
	}
	comma := -1 // of the last comma that only blanks follow so far
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			i = stringEnd(out, i)
		case c == '/':
			end := commentEnd(out, i)
			if end == i { // not a comment, and not JSON
				comma = -1
				i++
				break
			}
			blank(out[i:end])
			i = end
		case c == ',':
			comma = i
			i++
		case (c == '}' || c == ']') && comma >= 0 && follows(out[:comma]):
			out[comma] = ' '
			comma = -1
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
		default:
			comma = -1
			i++
		}
	}
	return out
}

// follows reports whether a value ends where text ends, so that a comma there
// trails it: "[,]" is left for the parser to refuse.
func follows(text []byte) bool {
	text = bytes.TrimRight(text, " \t\r\n")
	return len(text) > 0 && strings.IndexByte("[{,:", text[len(text)-1]) < 0
}

// stringEnd is where the string that begins at i ends.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// commentEnd is where the comment that begins at i ends, or i when there is
// none. One that isn't closed isn't a comment.
func commentEnd(b []byte, i int) int {
	if i+1 == len(b) {
		return i
	}
	switch b[i+1] {
	case '/':
		if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(b)
	case '*':
		if n := bytes.Index(b[i+2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return i
}

func blank(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\r' {
			b[i] = ' '
		}
	}
}

// Package jsonscan is a strict JSON scanner over a byte slice. It accepts
// exactly what encoding/json accepts, needs no reflection, and allocates only
// for the strings that are asked for and for errors.
package jsonscan

import "fmt"

// maxDepth is encoding/json's nesting limit: a text that one of both accepts
// must not be refused by the other one.
const maxDepth = 10000

// A SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int // of the first byte that doesn't fit; the text's length when it ends too early
	reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.reason)
}

const (
	reasonEnd     = "unexpected end"
	reasonControl = "control character in a string"
)

// Scanner pulls one JSON text apart, front to back, in one pass. After the
// first error every method returns its zero value, so that callers check only
// End. A Scanner is a value: a copy is a mark to go back to.
// It must not be used by two goroutines at once.
type Scanner struct {
	buf   []byte
	pos   int
	depth int
	first bool // nothing has been read yet of the innermost object or array
	err   *SyntaxError
	long  Long
}

// Long is the longest string of a text that was scanned, which a second scan of
// the same text needn't look at again. Its zero value says nothing.
type Long struct {
	start, end int // of the body; it never begins at 0, where at most its quote is
	flags      stringFlags
}

// New returns a scanner at the start of text.
func New(text []byte) Scanner { return Scanner{buf: text} }

// NewScanned is New for a text that SkipLong has returned together with long.
func NewScanned(text []byte, long Long) Scanner { return Scanner{buf: text, long: long} }

// Peek returns the first byte of the next value ('{', '[', '"', 't', 'f', 'n',
// a digit or '-'), or 0 at the end of the text. It doesn't say that the value
// is valid.
func (s *Scanner) Peek() byte {
	s.space()
	if s.err != nil || s.pos >= len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// Enter reads the opening byte, '{' or '[', of the next value. Key or Elem
// then walks what is inside.
func (s *Scanner) Enter(open byte) bool {
	s.space()
	if s.err != nil {
		return false
	}
	if s.pos >= len(s.buf) {
		return s.fail(s.pos, reasonEnd)
	}
	if s.buf[s.pos] != open {
		if open == '{' {
			return s.fail(s.pos, "not an object")
		}
		return s.fail(s.pos, "not an array")
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail(s.pos, "nested too deeply")
	}
	s.pos++
	s.first = true
	return true
}

// Key reads the next member's key, up to its value, in the object that was
// entered last. It returns false at the object's end, which it reads too.
// The caller reads the value before it calls Key again.
func (s *Scanner) Key() (String, bool) {
	if !s.more('}') {
		return String{}, false
	}
	key := s.String()
	s.space()
	if s.err != nil {
		return String{}, false
	}
	if s.pos >= len(s.buf) || s.buf[s.pos] != ':' {
		s.fail(s.pos, "expected ':'")
		return String{}, false
	}
	s.pos++
	return key, true
}

// Elem says whether the array that was entered last has another element, which
// the caller reads before it calls Elem again. It returns false at the array's
// end, which it reads too.
func (s *Scanner) Elem() bool { return s.more(']') }

// more reads the comma in front of the next member or element, or the end.
func (s *Scanner) more(end byte) bool {
	s.space()
	if s.err != nil {
		return false
	}
	if s.pos >= len(s.buf) {
		return s.fail(s.pos, reasonEnd)
	}
	c := s.buf[s.pos]
	if c == end {
		s.pos++
		s.depth--
		s.first = false
		return false
	}
	if s.first {
		s.first = false
		return true
	}
	if c != ',' {
		if end == '}' {
			return s.fail(s.pos, "expected ',' or '}'")
		}
		return s.fail(s.pos, "expected ',' or ']'")
	}
	s.pos++ // that a value follows is for its reader to find
	return true
}

// String reads a string.
func (s *Scanner) String() String {
	s.space()
	if s.err != nil {
		return String{}
	}
	if s.pos >= len(s.buf) || s.buf[s.pos] != '"' {
		s.fail(s.pos, "expected a string")
		return String{}
	}
	start := s.pos + 1
	end, flags, reason := stringEnd(s.buf, start, &s.long)
	if reason != "" {
		s.fail(end, reason)
		return String{}
	}
	s.pos = end + 1
	return String{Body: s.buf[start:end], flags: flags}
}

// Skip reads any value, validates it and returns its bytes, without the spaces
// around it.
func (s *Scanner) Skip() []byte {
	s.space()
	if s.err != nil {
		return nil
	}
	end, reason := skip(s.buf, s.pos, s.depth, &s.long)
	if reason != "" {
		s.fail(end, reason)
		return nil
	}
	raw := s.buf[s.pos:end:end]
	s.pos = end
	return raw
}

// SkipLong is Skip, and returns also the longest string in the value.
func (s *Scanner) SkipLong() ([]byte, Long) {
	s.long = Long{}
	raw := s.Skip()
	long := s.long
	if long.start > 0 {
		begin := s.pos - len(raw)
		long.start, long.end = long.start-begin, long.end-begin
	}
	return raw, long
}

// Offset is how far s has come in its text, in bytes.
func (s *Scanner) Offset() int { return s.pos }

// Err returns the first error so far.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil // not a nil *SyntaxError in an error
	}
	return s.err
}

// End returns the first error; text after the value is one.
func (s *Scanner) End() error {
	s.space()
	if s.err == nil && s.pos < len(s.buf) {
		s.fail(s.pos, "text after the value")
	}
	return s.Err()
}

func (s *Scanner) fail(at int, reason string) bool {
	if s.err == nil {
		if at >= len(s.buf) {
			at, reason = len(s.buf), reasonEnd
		}
		s.err = &SyntaxError{Offset: at, reason: reason}
	}
	return false
}

func (s *Scanner) space() {
	if s.pos < len(s.buf) && s.buf[s.pos] <= ' ' {
		s.pos = skipSpace(s.buf, s.pos)
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at b[i], or where and why it is none.
// Depth counts what encloses it. It recurses once per level.
func skip(b []byte, i, depth int, long *Long) (end int, reason string) {
	if i >= len(b) {
		return i, reasonEnd
	}
	switch c := b[i]; {
	case c == '"':
		if end, _, reason = stringEnd(b, i+1, long); reason != "" {
			return end, reason
		}
		return end + 1, ""
	case c == '{':
		return skipObject(b, i, depth+1, long)
	case c == '[':
		return skipArray(b, i, depth+1, long)
	case c == '-' || '0' <= c && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return i, "expected a value"
}

func skipObject(b []byte, i, depth int, long *Long) (end int, reason string) {
	if depth > maxDepth {
		return i, "nested too deeply"
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, ""
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return i, "expected a key"
		}
		if i, _, reason = stringEnd(b, i+1, long); reason != "" {
			return i, reason
		}
		i = skipSpace(b, i+1)
		if i >= len(b) || b[i] != ':' {
			return i, "expected ':'"
		}
		if i, reason = skip(b, skipSpace(b, i+1), depth, long); reason != "" {
			return i, reason
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return i + 1, ""
		default:
			return i, "expected ',' or '}'"
		}
	}
}

func skipArray(b []byte, i, depth int, long *Long) (end int, reason string) {
	if depth > maxDepth {
		return i, "nested too deeply"
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, ""
	}
	for {
		if i, reason = skip(b, i, depth, long); reason != "" {
			return i, reason
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1) // skip expects a value's first byte
		case i < len(b) && b[i] == ']':
			return i + 1, ""
		default:
			return i, "expected ',' or ']'"
		}
	}
}

func skipLiteral(b []byte, i int, want string) (end int, reason string) {
	for j := range len(want) {
		if i+j >= len(b) || b[i+j] != want[j] {
			return i + j, "expected " + want
		}
	}
	return i + len(want), ""
}

func skipNumber(b []byte, i int) (end int, reason string) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++ // no other digit may follow
	} else if i, reason = skipDigits(b, i); reason != "" {
		return i, reason
	}
	if i < len(b) && b[i] == '.' {
		if i, reason = skipDigits(b, i+1); reason != "" {
			return i, reason
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, reason = skipDigits(b, i); reason != "" {
			return i, reason
		}
	}
	return i, ""
}

func skipDigits(b []byte, i int) (end int, reason string) {
	start := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i == start {
		return i, "expected a digit"
	}
	return i, ""
}

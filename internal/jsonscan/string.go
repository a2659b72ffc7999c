package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// String is a string as it stands in a JSON text. Only a Scanner makes one, so
// its escapes are known to be well-formed.
type String struct {
	Body  []byte // between the quotes; aliases the text
	flags stringFlags
}

type stringFlags uint8

const (
	escaped stringFlags = 1 << iota
	nonASCII
)

// Plain says that Body is the string's value: ASCII without escapes.
func (s String) Plain() bool { return s.flags == 0 }

// Is says whether the string's value is want. It allocates only for a string
// with escapes.
func (s String) Is(want string) bool {
	if s.flags == 0 {
		return string(s.Body) == want
	}
	return s.Decode() == want
}

// Decode returns the string's value, equal to encoding/json's: bytes that
// aren't UTF-8 and lone surrogates become U+FFFD. It copies the body once.
func (s String) Decode() string {
	if s.flags == 0 || s.flags == nonASCII && utf8.Valid(s.Body) {
		return string(s.Body)
	}
	// All escapes are ASCII, so that the runs between them are valid if the whole is.
	valid := s.flags&nonASCII == 0 || utf8.Valid(s.Body)
	var b strings.Builder
	b.Grow(len(s.Body))
	for body := s.Body; len(body) > 0; {
		if body[0] == '\\' {
			body = body[decodeEscape(&b, body):]
			continue
		}
		run := body
		if i := bytes.IndexByte(body, '\\'); i >= 0 {
			run = body[:i]
		}
		if valid {
			b.Write(run)
		} else {
			writeRepaired(&b, run)
		}
		body = body[len(run):]
	}
	// Text that is mostly \uXXXX decodes to half its size or less: don't keep
	// the other half alive for as long as the caller keeps the string.
	if b.Len() < b.Cap()/3*2 {
		return strings.Clone(b.String())
	}
	return b.String()
}

// decodeEscape writes what the escape at the start of s means and returns its
// length: that of both halves for a pair of surrogates.
func decodeEscape(b *strings.Builder, s []byte) int {
	switch c := s[1]; c {
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'u':
		r := hex4(s[2:])
		if !utf16.IsSurrogate(r) {
			b.WriteRune(r)
			return 6
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if r = utf16.DecodeRune(r, hex4(s[8:])); r != utf8.RuneError {
				b.WriteRune(r)
				return 12
			}
		}
		b.WriteRune(utf8.RuneError)
		return 6
	default:
		b.WriteByte(c) // a quote, a backslash or a slash
	}
	return 2
}

// writeRepaired writes s with each byte that isn't UTF-8 as U+FFFD.
func writeRepaired(b *strings.Builder, s []byte) {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		b.WriteRune(r)
		s = s[n:]
	}
}

// hexDigits has the value of each hex digit, and noHex for all other bytes.
var hexDigits = func() (t [256]uint8) {
	for c := range t {
		t[c] = noHex
	}
	for v, c := range []byte("0123456789abcdef") {
		t[c] = uint8(v)
	}
	for v, c := range []byte("ABCDEF") {
		t[c] = uint8(10 + v)
	}
	return t
}()

const noHex = 0xff

// hex4 returns the number that s begins with in four hex digits.
func hex4(s []byte) rune {
	_ = s[3]
	return rune(hexDigits[s[0]])<<12 | rune(hexDigits[s[1]])<<8 | rune(hexDigits[s[2]])<<4 | rune(hexDigits[s[3]])
}

// stringEnd returns where the closing quote is of the string whose body begins
// at b[i], or where and why it is no string.
func stringEnd(b []byte, i int, long *Long) (end int, flags stringFlags, reason string) {
	if i == long.start {
		return long.end, long.flags, ""
	}
	for start := i; ; {
		var high bool
		if i, high = plainEnd(b, i); high {
			flags |= nonASCII
		}
		if i >= len(b) {
			return i, flags, reasonEnd
		}
		switch b[i] {
		case '"':
			if i-start > long.end-long.start {
				*long = Long{start, i, flags}
			}
			return i, flags, ""
		case '\\':
			flags |= escaped
			n, reason := escapeLen(b[i:])
			if reason != "" {
				return i + n, flags, reason
			}
			i += n
		default:
			return i, flags, reasonControl
		}
	}
}

// escapeLen returns the length of the escape that s begins with.
func escapeLen(s []byte) (n int, reason string) {
	if len(s) < 2 {
		return len(s), reasonEnd
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		if len(s) >= 6 && hexDigits[s[2]]|hexDigits[s[3]]|hexDigits[s[4]]|hexDigits[s[5]] != noHex {
			return 6, ""
		}
		for n = 2; n < len(s) && hexDigits[s[n]] != noHex; n++ {
		}
		return n, `expected four hex digits after \u`
	}
	return 1, "unknown escape"
}

// Bytes of a word, all alike.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plainEnd returns the index of the first quote, backslash or control
// character in b[i:], else len(b), and whether a byte before it has its high
// bit set. It looks at eight bytes at a time.
func plainEnd(b []byte, i int) (end int, high bool) {
	var seen uint64
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if stop := stops(w); stop != 0 {
			n := bits.TrailingZeros64(stop) / 8
			seen |= w & (1<<(8*n) - 1)
			return i + n, seen&highs != 0
		}
		seen |= w
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		seen |= uint64(c)
	}
	return i, seen&highs != 0
}

// stops has the high bit set of each byte of w that ends a plain run. The
// lowest bit set is exact: the subtractions borrow only from bytes above one
// that is marked itself.
func stops(w uint64) uint64 {
	quoteOrControl := (w ^ 0x02*ones) - 0x21*ones // '"'^2 is 0x20, no other printable falls below 0x21
	backslash := (w ^ '\\'*ones) - ones
	return (quoteOrControl | backslash) &^ w & highs
}

package jsonscan

import "bytes"

// Valid returns nil if text is one JSON value, with spaces around it or not.
func Valid(text []byte) error {
	s := New(text)
	s.Skip()
	return s.End()
}

// Object returns nil if text is valid JSON and an object.
func Object(text []byte) error {
	s := New(text)
	if c := s.Peek(); c != '{' && c != 0 {
		if err := Valid(text); err != nil {
			return err
		}
		return &SyntaxError{Offset: s.pos, reason: "not an object"}
	}
	return Valid(text)
}

// HasKey reports whether text, which is valid, is an object with that key.
func HasKey(text []byte, name string) bool {
	s := New(text)
	s.Enter('{')
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if key.Decode() == name {
			return true
		}
		s.Skip()
	}
	return false
}

// Line returns the same JSON on one line: line breaks, which valid JSON has
// only between its tokens, become spaces. It returns text itself, not a copy,
// if there are none.
func Line(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return AppendLine(make([]byte, 0, len(text)), text)
}

// AppendLine appends text to dst, each line break as a space. So what it
// appends is one line even if text isn't JSON.
func AppendLine(dst, text []byte) []byte {
	start := len(dst)
	dst = append(dst, text...)
	for _, c := range [...]byte{'\n', '\r'} {
		for line := dst[start:]; ; {
			i := bytes.IndexByte(line, c)
			if i < 0 {
				break
			}
			line[i] = ' '
			line = line[i+1:]
		}
	}
	return dst
}

// Repair returns a copy of text in which control characters inside strings are
// escaped, if they are what Valid complains of first; otherwise nil. They are
// the one offence against JSON that is common and has only one meaning.
func Repair(text []byte) []byte {
	s := New(text)
	s.Skip()
	if s.err == nil || s.err.reason != reasonControl {
		return nil
	}
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(text)+64)
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			inString = !inString
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case inString && c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4])
			c = hex[c&15]
		}
		out = append(out, c)
	}
	return out
}

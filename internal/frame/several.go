package frame

import (
	"bytes"
	"errors"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// Batch calls f for each element if line is a JSON array, which in JSON-RPC is
// a batch of messages, and returns whether it is one. The elements alias the
// line, or a copy in which control characters are repaired.
func Batch(line []byte, f func(elem []byte)) bool {
	line = Trim(line)
	if len(line) == 0 || line[0] != '[' {
		return false
	}
	if jsonscan.Valid(line) != nil {
		if line = jsonscan.Repair(line); line == nil || jsonscan.Valid(line) != nil {
			return false
		}
	}
	s := jsonscan.New(line)
	s.Enter('[')
	for s.Elem() {
		f(s.Skip())
	}
	return true
}

// Salvage calls f for each message that it finds on a line that Parse calls
// Junk, and returns whether it found any: two messages glued together, log text
// glued in front of a message or behind it. The messages alias the line.
//
// After other text only responses are taken: a server that logs what it
// receives to stdout must not have its client's own requests sent back as if
// the server had made them.
func Salvage(line []byte, f func(msg []byte)) bool {
	line = Trim(line)
	found, clean := false, true
	// A line made to look like the start of a message over and over would take
	// quadratic time; honest ones need one scan of each byte.
	budget := 4*len(line) + 1024
	for budget > 0 {
		i := bytes.IndexByte(line, '{')
		if i < 0 {
			break
		}
		clean = clean && len(Trim(line[:i])) == 0
		line = line[i:]
		s := jsonscan.New(line)
		raw := s.Skip()
		if raw == nil {
			var bad *jsonscan.SyntaxError
			errors.As(s.Err(), &bad)
			budget -= bad.Offset
			clean, line = false, line[1:]
			continue
		}
		line = line[len(raw):]
		m, err := Parse(raw)
		if err == nil && (clean || m.Kind == Response) {
			found = true
			f(raw)
		}
		clean = clean && err == nil
	}
	return found
}

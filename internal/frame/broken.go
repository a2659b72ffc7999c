package frame

import (
	"bytes"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// tailMember is how close to the end of a line an id is looked for behind a result
// that isn't JSON.
const tailMember = 64

// Broken looks at a line that Parse calls Junk. If it is an answer but for its JSON,
// as with NaN for a number, an unknown escape, or its end cut off, Broken returns
// the id that it answers and what is wrong.
func Broken(line []byte) (id int64, wrong error, ok bool) {
	line = Trim(line)
	if len(line) == 0 || line[0] != '{' {
		return 0, nil, false
	}
	var found ID
	outcome := false
	s := jsonscan.New(line)
	s.Enter('{')
	for key, more := s.Key(); more; key, more = s.Key() {
		switch {
		case key.Is("id"):
			found = ParseID(s.Skip())
		case key.Is("method"):
			return 0, nil, false // a request, its client's own perhaps
		case key.Is("result"), key.Is("error"):
			outcome = true
			s.Skip()
		default:
			s.Skip()
		}
	}
	wrong = s.End()
	if wrong == nil || !outcome {
		return 0, nil, false
	}
	if found.Kind == Missing {
		found = lastID(line)
	}
	return found.Int, wrong, found.Kind == Integer
}

// lastID is the id that is the last member of a line, or the last but one.
func lastID(line []byte) ID {
	end := line[max(0, len(line)-tailMember):]
	i := bytes.LastIndex(end, []byte(`"id":`))
	if i < 0 || end[len(end)-1] != '}' {
		return ID{}
	}
	s := jsonscan.New(end[i+len(`"id":`):])
	raw := s.Skip()
	if raw == nil {
		return ID{}
	}
	return ParseID(raw)
}

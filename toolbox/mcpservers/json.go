package mcpservers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parseJSON reads JSON with comments and trailing commas, as editors write it.
// Text of which nothing but these is left is nil.
func parseJSON(data []byte) (*node, *Error) {
	plain := plainJSON(data)
	if len(bytes.TrimSpace(plain)) == 0 {
		return nil, nil
	}
	p := jsonParser{d: json.NewDecoder(bytes.NewReader(plain)), text: plain, line: 1}
	p.d.UseNumber()
	root, err := p.value(0)
	if err == nil {
		if _, more := p.d.Token(); more != io.EOF {
			err = errors.New("something follows after the end: one object is a file")
		}
	}
	if err != nil {
		return nil, &Error{Place: Place{Line: p.lineOf(err)}, Reason: "isn't JSON: " + jsonReason(err)}
	}
	return root, nil
}

type jsonParser struct {
	d    *json.Decoder
	text []byte
	seen int // bytes whose lines are counted
	line int
}

// here is the line at which the last token ends: only texts could span lines,
// and JSON's don't.
func (p *jsonParser) here() int {
	end := int(p.d.InputOffset())
	p.line += bytes.Count(p.text[p.seen:end], []byte("\n"))
	p.seen = end
	return p.line
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := p.d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.here()}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			n.kind = list
			return n, p.items(n, depth)
		}
		n.kind = object
		return n, p.members(n, depth)
	case string:
		n.kind, n.text = text, t
	case json.Number:
		n.kind, n.text = number, t.String()
	case bool:
		n.kind, n.text = boolean, fmt.Sprint(t)
	}
	return n, nil
}

func (p *jsonParser) items(n *node, depth int) error {
	for p.d.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.d.Token()
	return err
}

func (p *jsonParser) members(n *node, depth int) error {
	for p.d.More() {
		name, err := p.d.Token()
		if err != nil {
			return err
		}
		m := member{name: name.(string), line: p.here()} // the decoder takes nothing else for a name
		if m.value, err = p.value(depth + 1); err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	_, err := p.d.Token()
	return err
}

var errTooDeep = errors.New("values are nested too deep")

// lineOf is the line at which err was found.
func (p *jsonParser) lineOf(err error) int {
	offset := int(p.d.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = int(syntax.Offset)
	}
	before := p.text[:max(0, min(offset-1, len(p.text)))]
	return bytes.Count(before, []byte("\n")) + 1
}

// jsonReason is the parser's own words, which quote one character at most.
func jsonReason(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early: a quote or a bracket isn't closed"
	}
	return err.Error()
}

package mcpservers

import (
	"fmt"
	"strings"

	"github.com/mcppool/mcppool"
)

// entryReader reads one server.
type entryReader struct {
	p        *parser
	e        Entry
	traits   traits
	problems Errors
	line     int // of the field that is being read

	transport string // what is stated, as it is written
	urlField  string // the name under which the URL stands
	envFile   string
	hostOnly  string // why only the host can run it; empty when others can
	forwarded map[string]string
	unboxed   bool // sandboxEnabled is false
}

func (p *parser) entry(s rawServer) Entry {
	r := entryReader{
		p: p, traits: hostTraits[p.file.Host], line: s.line,
		e: Entry{
			Name: s.name, File: p.file.Path, Line: s.line, Host: p.file.Host,
			Disabled: s.off, Server: mcppool.Server{Name: s.name},
		},
	}
	switch {
	case s.name == "":
		r.fail("", "has an empty name: name it")
	case s.twin != 0:
		r.fail("", fmt.Sprintf("stands here and on line %d: remove one, or rename it", s.twin))
	case s.node.kind != object:
		r.fail("", `isn't an object: write {"command": ..., "args": [...]} or {"url": ...}`)
	default:
		r.read(s.node)
	}
	return r.entry()
}

// entry is what was read, with what is wrong with it. Nobody has to mend what is
// switched off.
func (r *entryReader) entry() Entry {
	switch n := len(r.problems); {
	case n == 0 || r.e.Disabled:
		r.e.Err = nil
	case n == 1:
		r.e.Err = r.problems[0]
	default:
		r.e.Err = r.problems
	}
	return r.e
}

func (r *entryReader) place(field string) Place {
	return Place{File: r.p.file.Path, Line: r.line, Server: r.e.Name, Field: field}
}

func (r *entryReader) fail(field, reason string) {
	r.addProblem(&Error{Place: r.place(field), Reason: reason})
}

func (r *entryReader) addProblem(e *Error) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, e)
	}
}

func (r *entryReader) warn(field, reason string) {
	r.p.addWarning(Warning{Place: r.place(field), Reason: reason})
}

// read reads the switches first: whether a server is on says whether its
// variables are needed.
func (r *entryReader) read(n *node) {
	r.duplicates("", n)
	for _, m := range n.members {
		if meaning := fieldNames[m.name]; meaning == fieldOn || meaning == fieldOff {
			r.line = m.line
			r.readSwitch(m.name, meaning, m.value)
		}
	}
	if boxed := n.get("sandboxEnabled"); boxed != nil {
		r.unboxed = boxed.kind == boolean && !boxed.isTrue()
	}
	r.members("", n)
	r.line = r.e.Line
	if r.hostOnly != "" {
		r.problems = nil
		r.fail("", r.hostOnly)
		return
	}
	r.checkTransport()
	if r.e.Disabled {
		return
	}
	r.readEnvFile()
	for name, value := range r.forwarded {
		if _, own := r.e.Server.Env[name]; !own {
			r.setEnv(name, value)
		}
	}
	if len(r.problems) == 0 {
		r.checkServer()
	}
}

// members reads the fields of an object; prefix is its own name with a dot.
func (r *entryReader) members(prefix string, n *node) {
	for _, m := range n.members {
		if m.value.kind == null {
			continue
		}
		r.line = m.line
		r.member(prefix+m.name, m.name, m.value)
	}
}

// duplicates fails where a field comes twice: hosts disagree on which counts.
func (r *entryReader) duplicates(prefix string, n *node) {
	lines := make(map[string]int, len(n.members))
	for _, m := range n.members {
		if first, twice := lines[m.name]; twice {
			r.line = m.line
			r.fail(prefix+m.name, fmt.Sprintf("stands on line %d too: remove one", first))
		}
		lines[m.name] = m.line
	}
}

func (r *entryReader) readSwitch(field string, meaning fieldMeaning, n *node) {
	switch n.kind {
	case boolean:
		if (n.text == "true") == (meaning == fieldOff) {
			r.e.Disabled = true // with both, off wins
		}
	case null:
		// as if it weren't there
	default:
		r.fail(field, "is neither true nor false")
	}
}

// expand replaces the variables in a text of a field.
func (r *entryReader) expand(field, s string) string {
	x := r.expander(field)
	return x.expand(s)
}

func (r *entryReader) expander(field string) *expander {
	return &expander{
		p: r.p, traits: r.traits, off: r.e.Disabled,
		fail: func(variable, reason string, cause error) {
			r.addProblem(&Error{Place: r.place(field), Variable: variable, Reason: reason, cause: cause})
		},
		warn: func(reason string) { r.warn(field, reason) },
	}
}

// text reads a text with its variables replaced.
func (r *entryReader) text(field string, n *node) string {
	if n.kind != text {
		r.fail(field, "isn't a text in quotes")
		return ""
	}
	return r.expand(field, n.text)
}

// path reads the path of a program or a directory.
func (r *entryReader) path(field string, n *node) string {
	return r.expander(field).tilde(r.text(field, n))
}

// texts reads a list of texts. Numbers and booleans are taken as they are
// written, as people write ports.
func (r *entryReader) texts(field string, items []*node) []string {
	texts := make([]string, 0, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch item.kind {
		case text:
			s := r.expand(at, item.text)
			if strings.HasPrefix(item.text, "~/") {
				r.warn(at, `begins with "~", which isn't replaced in arguments: there is no shell; write ${userHome}`)
			}
			texts = append(texts, s)
		case number, boolean:
			texts = append(texts, item.text)
		default:
			r.fail(at, "isn't a text in quotes")
		}
	}
	return texts
}

// pairs reads an object of texts. Null means that the pair isn't there.
func (r *entryReader) pairs(field string, n *node) map[string]string {
	if n.kind != object {
		r.fail(field, `isn't an object: write {"NAME": "value"}`)
		return nil
	}
	r.duplicates(field+".", n)
	pairs := make(map[string]string, len(n.members))
	for _, m := range n.members {
		r.line = m.line
		at := field + "." + m.name
		switch m.value.kind {
		case text:
			pairs[m.name] = r.expand(at, m.value.text)
		case number, boolean:
			pairs[m.name] = m.value.text
		case null:
			// VS Code: the variable isn't handed on
		default:
			r.fail(at, "isn't a text in quotes")
		}
	}
	return pairs
}

func (r *entryReader) setEnv(name, value string) {
	if r.e.Server.Env == nil {
		r.e.Server.Env = make(map[string]string)
	}
	r.e.Server.Env[name] = value
}

func (r *entryReader) setHeader(name, value string) {
	if r.e.Server.Header == nil {
		r.e.Server.Header = make(map[string]string)
	}
	r.e.Server.Header[name] = value
}

// names reads a list of tools' names, in which variables mean nothing.
func (r *entryReader) names(field string, n *node) []string {
	names, ok := n.texts()
	if !ok {
		r.fail(field, `isn't a list of tools' names: write ["a", "b"]`)
	}
	return names
}

// protocol reads what pins the protocol's era.
func (r *entryReader) protocol(field string, n *node) {
	p := mcppool.Protocol(n.str())
	switch p {
	case mcppool.ProtocolLegacy, mcppool.ProtocolModern:
		r.e.Server.Protocol = p
	default:
		r.fail(field, `is neither "legacy" nor "modern"`)
	}
}

package mcpservers

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Place is where in a file something is.
type Place struct {
	File   string // empty when it has no name
	Line   int    // 1 is the first; 0 when it isn't known
	Server string // its name; empty when it is about the file
	Field  string // command, args[1], env.TOKEN, ...; empty when it is about all of it
}

// maxNamed is how many bytes of a name are shown: names come from the file.
const maxNamed = 64

// String is the place on one line, such as mcp.json:7: server "github": env.TOKEN.
func (p Place) String() string {
	var parts []string
	switch {
	case p.File != "" && p.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", plain(p.File, len(p.File)), p.Line))
	case p.File != "":
		parts = append(parts, plain(p.File, len(p.File)))
	case p.Line > 0:
		parts = append(parts, fmt.Sprintf("line %d", p.Line))
	}
	if p.Server != "" {
		parts = append(parts, "server "+quoted(p.Server))
	}
	if p.Field != "" {
		parts = append(parts, plain(p.Field, 2*maxNamed))
	}
	return strings.Join(parts, ": ")
}

// Error is what is wrong with a file or with one of its servers, and what to
// write instead. Its text is one line and holds no value of the file, of the
// environment or of an input: only names.
type Error struct {
	Place
	Variable string // that has no value; empty when it is about something else
	Reason   string

	cause error // isn't part of the text: it may quote what it was called with
}

func (e *Error) Error() string { return "mcpservers: " + e.text() }

// Unwrap returns the error of the file system or of [Options.Input], if it was
// one.
func (e *Error) Unwrap() error { return e.cause }

func (e *Error) text() string {
	text := e.Reason
	if e.Variable != "" {
		text = "variable " + quoted(e.Variable) + " " + text
	}
	if at := e.Place.String(); at != "" {
		text = at + ": " + text
	}
	return text
}

// Errors is all that is wrong with one server, in the order of the file.
type Errors []*Error

func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.text()
	}
	return "mcpservers: " + strings.Join(texts, "; ")
}

// Unwrap returns each of the errors.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, err := range e {
		list[i] = err
	}
	return list
}

// Warning is a place in a file that has no effect, or another one than in its
// host, though the server can be used.
type Warning struct {
	Place
	Reason string
}

// String is the warning on one line, without any value of the file.
func (w Warning) String() string {
	return (&Error{Place: w.Place, Reason: w.Reason}).text()
}

// quoted is a name between quotes, on one line and not endless.
func quoted(name string) string { return strconv.Quote(cut(name, maxNamed)) }

// plain is a name as it is where that is one line, and quoted elsewhere.
func plain(name string, most int) string {
	name = cut(name, most)
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

func cut(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

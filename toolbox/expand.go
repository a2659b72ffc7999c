package toolbox

import "strings"

// expander replaces ${...} in the strings of one server's configuration.
type expander struct {
	env    func(name string) (string, bool)
	inputs map[string]string // defaults of the inputs that the file declares
	input  func(id string) (string, bool)
	report func(field, variable, reason string)
}

// expand replaces in s, once: what a variable holds isn't looked into.
//
//	${VAR}, ${env:VAR}                      the variable; an error when it isn't set
//	${VAR:-default}, ${env:VAR:-default}    default when it isn't set or is empty
//	${input:id}                             what Input gives, else the input's default
//
// A "$" that no "{" follows stands for itself.
func (e *expander) expand(field, s string) string {
	start := strings.Index(s, "${")
	if start < 0 {
		return s
	}
	var b strings.Builder
	for start >= 0 {
		b.WriteString(s[:start])
		body, rest, closed := strings.Cut(s[start+2:], "}")
		if !closed {
			e.report(field, "", `has "${" without "}"`)
			return ""
		}
		b.WriteString(e.value(field, body))
		s, start = rest, strings.Index(rest, "${")
	}
	b.WriteString(s)
	return b.String()
}

// value is what stands for ${body}.
func (e *expander) value(field, body string) string {
	if id, ok := strings.CutPrefix(body, "input:"); ok {
		return e.inputValue(field, id)
	}
	name, def, hasDefault := strings.Cut(strings.TrimPrefix(body, "env:"), ":-")
	if !isVariable(name) {
		e.report(field, name, "isn't a variable's name: ${NAME}, ${NAME:-default}, ${env:NAME} and ${input:id} are known")
		return ""
	}
	value, set := e.env(name)
	switch {
	case hasDefault && value == "":
		return def
	case !set:
		e.report(field, name, "isn't set and has no default")
	}
	return value
}

func (e *expander) inputValue(field, id string) string {
	if e.input != nil {
		if v, ok := e.input(id); ok {
			return v
		}
	}
	def, ok := e.inputs[id]
	if !ok {
		e.report(field, "input:"+id, "has no value and no default")
	}
	return def
}

// isVariable is what shells take for a variable's name.
func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && !(i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return name != ""
}

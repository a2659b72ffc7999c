package mcpservers

import (
	"os"
	"path/filepath"
	"strings"
)

// expander replaces variables in the strings of one server.
type expander struct {
	p      *parser
	traits traits
	off    bool // the server is disabled: nobody has to set its variables
	// fail is called with what is wrong, and the variable's name if it has one.
	fail func(variable, reason string, cause error)
	// warn is called with what the host wouldn't replace either.
	warn func(reason string)
}

const escapeHint = `; for the text itself write $${`

// expand replaces in s, once: what a variable holds isn't looked into.
//
//	${VAR}, ${env:VAR}          the variable
//	${VAR:-default}             default when it isn't set or is empty
//	${input:id}                 the input
//	${workspaceFolder} ${userHome} ${pathSeparator} ${/} ${workspaceFolderBasename} ${cwd}
//	${file:path}                what the file holds, without the line break at its end
//	${{ secrets.VAR }}          the variable, as Continue writes it
//	$${                         the text ${
//
// and $VAR, {env:VAR} and {file:path} where the host has them.
func (x *expander) expand(s string) string {
	if x.off || !strings.ContainsAny(s, "${") {
		return s
	}
	if x.traits.literal {
		if strings.Contains(s, "${") {
			x.warn(`has "${", which this host doesn't replace: it is handed on as it is`)
		}
		return s
	}
	if name, ok := strings.CutPrefix(s, "$"); ok && isVariable(name) && !x.traits.dollarName {
		x.fail("", "is $ and a name, which isn't replaced here: write ${...} for the variable, or $$ and the name for the text", nil)
		return ""
	}
	if name, ok := strings.CutPrefix(s, "$$"); ok && isVariable(name) {
		return s[1:]
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "${")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		var value string
		value, s = x.next(s[i:])
		if x.p.budget -= len(value); x.p.budget < 0 {
			x.fail("", "is one variable too many: what replaces those of this file is too long", nil)
			return ""
		}
		b.WriteString(value)
	}
	return b.String() + s
}

// next replaces what stands at the beginning of s, which begins with "$" or
// "{", and returns its value and the rest.
func (x *expander) next(s string) (value, rest string) {
	switch {
	case strings.HasPrefix(s, "$${"):
		return "${", s[3:]
	case strings.HasPrefix(s, "${{"):
		return x.braced(s, "${{", "}}", x.continueValue)
	case strings.HasPrefix(s, "${"):
		return x.braced(s, "${", "}", x.value)
	case strings.HasPrefix(s, "{{") && x.p.file.Host == LibreChat:
		x.fail("", "has {{...}}, which LibreChat fills in for each of its users: write the value or ${VAR}", nil)
		return "", ""
	case x.traits.bracesEnv && (strings.HasPrefix(s, "{env:") || strings.HasPrefix(s, "{file:")):
		return x.braced(s, "{", "}", x.value)
	case s[0] == '$' && x.traits.dollarName:
		return x.dollar(s)
	}
	return s[:1], s[1:]
}

// dollar replaces $NAME where the host does, $$NAME being its escape.
func (x *expander) dollar(s string) (value, rest string) {
	if strings.HasPrefix(s, "$(") {
		x.fail("", "has $(...), which runs a command: set a variable to its output and write ${VAR}", nil)
		return "", ""
	}
	if strings.HasPrefix(s, "$$") {
		n := variablePrefix(s[2:])
		return s[1 : 2+n], s[2+n:]
	}
	n := variablePrefix(s[1:])
	if n == 0 {
		return "$", s[1:]
	}
	return x.variable(s[1:1+n], "", false), s[1+n:]
}

// braced replaces what stands between opening and closing.
func (x *expander) braced(s, opening, closing string, value func(string) string) (string, string) {
	body, rest, closed := strings.Cut(s[len(opening):], closing)
	if !closed {
		x.fail("", `has "`+opening+`" without "`+closing+`"`+escapeHint, nil)
		return "", ""
	}
	return value(body), rest
}

func (x *expander) continueValue(body string) string {
	kind, name, _ := strings.Cut(strings.TrimSpace(body), ".")
	switch {
	case kind == "secrets" && isVariable(name):
		return x.variable(name, "", false)
	case kind == "inputs" && isVariable(name):
		return x.input(name)
	}
	x.fail("", "has ${{...}} that is neither secrets.NAME nor inputs.NAME", nil)
	return ""
}

// value is what stands for ${body}.
func (x *expander) value(body string) string {
	switch prefix, rest, _ := strings.Cut(body, ":"); prefix {
	case "input":
		return x.input(rest)
	case "file":
		if rest != "" {
			return x.contents(rest)
		}
	case "command", "config":
		x.fail("", "has ${"+prefix+":...}, which only the editor knows: write the value or ${VAR}", nil)
		return ""
	case "workspaceFolder", "workspaceFolderBasename", "cwd":
		return x.workspaceValue(prefix)
	case "userHome":
		return x.home()
	case "pathSeparator", "/":
		return string(os.PathSeparator)
	}
	name, def, hasDefault := strings.Cut(strings.TrimPrefix(body, "env:"), ":-")
	if !isVariable(name) {
		x.fail("", "has ${...} that isn't known: ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${workspaceFolder}, ${userHome}, ${pathSeparator} and ${/} are"+escapeHint, nil)
		return ""
	}
	return x.variable(name, def, hasDefault)
}

func (x *expander) variable(name, def string, hasDefault bool) string {
	value, set := x.p.getenv(name)
	switch {
	case hasDefault && (!set || value == ""):
		return def
	case !set:
		x.fail(name, "isn't set: set it, or write ${"+cut(name, maxNamed)+":-default}", nil)
		return ""
	}
	return value
}

// getenv looks a variable up and remembers that the file depends on it.
func (p *parser) getenv(name string) (string, bool) {
	value, set := p.opts.getenv(name)
	p.file.uses.addVariable(name, variable{value, set})
	return value, set
}

func (x *expander) input(id string) string {
	value, err := x.p.input(id)
	if err != nil {
		x.fail("input:"+id, "has no value: set Options.Input, or a default in the file's inputs", err)
	}
	return value
}

func (x *expander) workspaceValue(name string) string {
	switch {
	case x.p.workspace == "":
		x.fail("", "needs the project's directory: set Options.WorkspaceFolder", nil)
	case name == "workspaceFolderBasename":
		return filepath.Base(x.p.workspace)
	}
	return x.p.workspace
}

func (x *expander) home() string {
	home := x.p.opts.home()
	if home == "" {
		x.fail("", "needs the user's home directory, which isn't known: set Options.Home", nil)
	}
	return home
}

// contents is what a file holds, as opencode and Windsurf have it for secrets.
func (x *expander) contents(path string) string {
	data, e := x.p.readNamed(x.p.resolve(x.tilde(path)))
	if e != nil {
		x.fail("", "names a file that "+e.Reason, e.cause)
		return ""
	}
	return strings.TrimRight(string(data), "\r\n")
}

// tilde replaces a "~" at the beginning of a path, as shells do.
func (x *expander) tilde(path string) string {
	switch {
	case x.off || !strings.HasPrefix(path, "~"):
		return path
	case path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`):
		return x.home() + path[1:]
	}
	x.fail("", "begins with another user's ~: write the path in full", nil)
	return ""
}

// resolve is a path that a file names, from where relative ones count.
func (p *parser) resolve(path string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case p.workspace != "":
		return filepath.Join(p.workspace, path)
	}
	return filepath.Join(p.dir, path)
}

// readNamed reads a file that the file names, and remembers that it depends on
// it.
func (p *parser) readNamed(path string) ([]byte, *Error) {
	data, err := readFile(path, p.opts.maxSize())
	p.file.uses.addFile(path, digestOf(data, err))
	if p.budget -= len(data); p.budget < 0 {
		return nil, &Error{Reason: "is one too many: what this file names is too long"}
	}
	return data, err
}

// isVariable is what shells take for a variable's name.
func isVariable(name string) bool { return name != "" && variablePrefix(name) == len(name) }

// variablePrefix is how many bytes at the beginning of s are a variable's name.
func variablePrefix(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && !(i > 0 && '0' <= c && c <= '9') {
			return i
		}
	}
	return len(s)
}

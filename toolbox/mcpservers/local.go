package mcpservers

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// local reads what says how a child process is run.
func (r *entryReader) local(where string, meaning fieldMeaning, n *node) {
	switch meaning {
	case fieldCommand:
		r.command(where, n)
	case fieldArgs:
		if n.kind != list {
			r.fail(where, `isn't a list: write ["a", "b"], each argument a text of its own`)
			return
		}
		// After what a command that is a list has brought.
		r.e.Server.Args = append(r.e.Server.Args, r.texts(where, n.items)...)
	case fieldEnv:
		for name, value := range r.pairs(where, n) {
			r.setEnv(name, value)
		}
	case fieldEnvFile:
		r.envFile = r.path(where, n)
	case fieldEnvNames:
		r.envNames(where, n)
	case fieldDir:
		r.e.Server.Dir = r.directory(where, n)
	}
}

// command reads a text, opencode's list of command and arguments, or an object
// of path, args and env, as Zed had it.
func (r *entryReader) command(where string, n *node) {
	switch n.kind {
	case text:
		r.e.Server.Command = r.path(where, n)
	case list:
		if len(n.items) == 0 || n.items[0].kind != text {
			r.fail(where, `is a list without a command: write ["command", "argument"]`)
			return
		}
		words := r.texts(where, n.items)
		r.e.Server.Command = r.expander(where + "[0]").tilde(words[0])
		r.e.Server.Args = slices.Concat(words[1:], r.e.Server.Args)
	case object:
		for _, m := range n.members {
			r.line = m.line
			switch at := where + "." + m.name; m.name {
			case "path", "command":
				r.e.Server.Command = r.path(at, m.value)
			case "args", "env":
				r.local(at, fieldNames[m.name], m.value)
			default:
				r.warn(at, "isn't known and has no effect")
			}
		}
	default:
		r.fail(where, "isn't a text in quotes")
	}
}

// directory reads a working directory. A relative one counts from the project.
func (r *entryReader) directory(where string, n *node) string {
	dir := r.path(where, n)
	switch {
	case dir == "" || r.e.Disabled || filepath.IsAbs(dir):
		return dir
	case r.p.workspace != "":
		return filepath.Join(r.p.workspace, dir)
	}
	r.warn(where, "is relative, and counts from this process's own directory: write it in full, or set Options.WorkspaceFolder")
	return dir
}

// envNames reads the names of variables that are handed on, as Codex's env_vars
// and Goose's env_keys have them.
func (r *entryReader) envNames(where string, n *node) {
	if n.kind != list {
		r.fail(where, `isn't a list of variables: write ["NAME"]`)
		return
	}
	for _, item := range n.items {
		name := item.str()
		if name == "" {
			name = item.get("name").str()
		}
		if !isVariable(name) {
			r.fail(where, "has an item that isn't a variable's name")
			continue
		}
		if r.e.Disabled {
			continue
		}
		value, set := r.p.getenv(name)
		switch {
		case set:
			if r.forwarded == nil {
				r.forwarded = make(map[string]string)
			}
			r.forwarded[name] = value
		case r.p.file.Host == Goose:
			r.addProblem(&Error{Place: r.place(where), Variable: name,
				Reason: "isn't set: Goose keeps it in its keyring, which isn't read here; set it"})
		}
	}
}

// checkServer reports what would keep a server from starting, so that it is
// said with the file's line rather than by the start.
func (r *entryReader) checkServer() {
	s := &r.e.Server
	if strings.ContainsAny(s.Command, " \t") {
		if _, err := exec.LookPath(s.Command); err != nil {
			r.fail("command", `holds blanks and isn't a program: arguments go in args, each a text of its own`)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if value := s.Env[name]; name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			r.fail("env."+name, `isn't a variable that a process can have: its name is empty or has "=" in it, or a byte is zero`)
		}
	}
	for i, arg := range s.Args {
		if strings.Contains(arg, "\x00") {
			r.fail("args", "has a zero byte in argument "+strconv.Itoa(i))
		}
	}
	if strings.Contains(s.Command+s.Dir, "\x00") {
		r.fail("command", "or cwd has a zero byte")
	}
	r.checkURL()
}

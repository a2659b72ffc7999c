// Package childenv makes the environment of a child process: a small safe part
// of the host's, and what was asked for.
package childenv

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// safe names what every child gets of the host's environment: what programs
// need to find each other, their user's files and their language. It is the set
// that the MCP SDKs pass on, and where temporary files go and what the locale is
// besides.
var safe = func() map[string]bool {
	names := []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
	if runtime.GOOS == "windows" {
		names = []string{
			"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
		}
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}()

// IsSafe reports whether every child gets the variable.
func IsSafe(name string) bool {
	name = fold(name)
	return safe[name] || strings.HasPrefix(name, "LC_") && runtime.GOOS != "windows"
}

// Build returns the whole environment of a child, "name=value" each: the safe part
// of the host's, what inherit names of it ("*" is all), and extra, whose values
// win. Names are case-insensitive on Windows.
func Build(inherit []string, extra map[string]string) []string {
	more := make(map[string]bool, len(inherit))
	for _, n := range inherit {
		more[fold(n)] = true
	}
	set := make(map[string]bool, len(extra))
	env := make([]string, 0, len(extra)+len(safe))
	for name, value := range extra {
		set[fold(name)] = true
		env = append(env, name+"="+value)
	}
	for _, pair := range os.Environ() {
		// Windows keeps entries such as "=C:=C:\dir"; they have no name.
		name, value, ok := strings.Cut(pair, "=")
		folded := fold(name)
		if !ok || name == "" || set[folded] || !(IsSafe(name) || more[folded] || more["*"]) {
			continue
		}
		// A function that a shell exported is code, which runs in the child's shells.
		if strings.HasPrefix(value, "()") && !more["*"] && !more[folded] {
			continue
		}
		env = append(env, pair)
	}
	return env
}

// Added returns the variables that an environment has and another, before it was
// changed, has not, or not with that value.
func Added(before, after []string) map[string]string {
	added := make(map[string]string)
	for _, entry := range after {
		if name, value, ok := strings.Cut(entry, "="); ok && !slices.Contains(before, entry) {
			added[name] = value
		}
	}
	return added
}

// Inherited returns what a child that is built so gets of the host's environment
// besides the safe part: the variables that were asked for by name, and the rest that
// "*" brings.
func Inherited(inherit []string, extra map[string]string) (asked, rest map[string]string) {
	if len(inherit) == 0 {
		return nil, nil
	}
	asked, rest = make(map[string]string), make(map[string]string)
	for _, pair := range Build(inherit, extra) {
		name, value, _ := strings.Cut(pair, "=")
		_, own := extra[name]
		switch named := slices.ContainsFunc(inherit, func(n string) bool { return fold(n) == fold(name) }); {
		case own || IsSafe(name) && !named:
		case named:
			asked[name] = value
		default:
			rest[name] = value
		}
	}
	return asked, rest
}

func fold(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// IsName reports whether a variable can have this name.
func IsName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00")
}

// Package confcheck finds what no start of a server could mend in what says how to run
// or to reach it. A fault is a field, as written in Go, and what is wrong with it,
// without its value; both are empty when nothing is.
package confcheck

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

const nul = "\x00"

// Child looks at what a process is started with.
func Child(command, dir string, args []string, env map[string]string) (field, reason string) {
	switch {
	case strings.Contains(command, nul):
		return "Command", "contains a NUL byte"
	case strings.Contains(dir, nul):
		return "Dir", "contains a NUL byte"
	}
	for i, a := range args {
		if strings.Contains(a, nul) {
			return fmt.Sprintf("Args[%d]", i), "contains a NUL byte"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		field := fmt.Sprintf("Env[%q]", name)
		switch {
		case name == "":
			return field, "has an empty name"
		case strings.ContainsAny(name, "=\x00"):
			return field, `has "=" or a NUL byte in its name`
		case strings.Contains(env[name], nul):
			return field, "has a NUL byte in its value"
		}
	}
	return "", ""
}

// Remote looks at the address of a server and what is sent to it.
func Remote(address string, header map[string]string) (field, reason string) {
	// The parser's own error quotes the URL, which may hold a password.
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "URL", "can't be parsed"
	case u.Scheme != "http" && u.Scheme != "https": // it isn't told, since it may be the name of a user
		return "URL", "doesn't begin with http:// or https://"
	case u.Host == "":
		return "URL", "has no host"
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		field := fmt.Sprintf("Header[%q]", name)
		if name == "" || strings.ContainsAny(name, " \r\n\x00:") {
			return field, "isn't a header's name"
		}
		if strings.ContainsAny(header[name], "\r\n\x00") {
			return field, "has a line break or a NUL byte in its value"
		}
	}
	return "", ""
}

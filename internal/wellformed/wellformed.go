// Package wellformed reports what no start of a server could mend, without I/O. An error
// is a field's name and a reason, which holds no value; both are empty for none.
package wellformed

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

const nul = "\x00"

// Command checks what a child process is started with.
func Command(command string, args []string, env map[string]string, dir string) (field, reason string) {
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
		switch {
		case name == "":
			return envField(name), "has an empty name"
		case strings.ContainsAny(name, "=\x00"):
			return envField(name), `has "=" or a NUL byte in its name`
		case strings.Contains(env[name], nul):
			return envField(name), "has a NUL byte in its value"
		}
	}
	return "", ""
}

// Endpoint checks what a server at a URL is reached with.
func Endpoint(endpoint string, header map[string]string) (field, reason string) {
	// The parser's own error quotes the URL, which may hold a password.
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "URL", "can't be parsed"
	case u.Scheme != "http" && u.Scheme != "https": // it isn't told, since it may be the name of a user
		return "URL", "doesn't begin with http:// or https://"
	case u.Host == "":
		return "URL", "has no host"
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name == "" || strings.ContainsAny(name, " \r\n\x00:") {
			return headerField(name), "isn't a header's name"
		}
		if strings.ContainsAny(header[name], "\r\n\x00") {
			return headerField(name), "has a line break or a NUL byte in its value"
		}
	}
	return "", ""
}

func envField(name string) string    { return fmt.Sprintf("Env[%q]", name) }
func headerField(name string) string { return fmt.Sprintf("Header[%q]", name) }

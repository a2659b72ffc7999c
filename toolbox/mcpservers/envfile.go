package mcpservers

import (
	"errors"
	"fmt"
	"strings"
)

// readEnvFile adds the variables of the server's env file, over which those of
// env win.
func (r *entryReader) readEnvFile() {
	if r.envFile == "" {
		return
	}
	data, e := r.p.readNamed(r.p.resolve(r.envFile))
	if e != nil {
		r.addProblem(&Error{Place: r.place("envFile"), Reason: "names a file that " + e.Reason, cause: e.cause})
		return
	}
	pairs, err := parseEnv(string(data))
	if err != nil {
		r.fail("envFile", err.Error())
		return
	}
	for name, value := range pairs {
		if _, own := r.e.Server.Env[name]; !own {
			r.setEnv(name, value)
		}
	}
}

// parseEnv reads lines of NAME=value. A line may begin with "export", and # at
// its beginning or after a blank begins a comment. 'Text' stands for itself;
// "text" has \n, \r, \t, \" and \\ replaced; both may go over several lines.
// Nothing is expanded. The error holds the line, and no value.
func parseEnv(text string) (map[string]string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	pairs := make(map[string]string)
	for line := 1; text != ""; {
		first, rest, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimSpace(first)
		if trimmed == "" || trimmed[0] == '#' {
			text = rest
			line++
			continue
		}
		name, value, found := strings.Cut(text, "=")
		name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "export "))
		if !found || strings.Contains(name, "\n") || !isEnvName(name) {
			return nil, fmt.Errorf("names a file whose line %d isn't NAME=value", line)
		}
		value, after, err := envValue(value)
		if err != nil {
			return nil, fmt.Errorf("names a file in whose line %d %w", line, err)
		}
		pairs[name] = value
		line += strings.Count(text[:len(text)-len(after)], "\n")
		text = after
	}
	return pairs, nil
}

// isEnvName takes dots and dashes besides what shells take.
func isEnvName(name string) bool {
	return isVariable(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

var errQuote = errors.New("a quote isn't closed, or something stands behind it")

// envValue is the value at the beginning of s, and what follows its line.
func envValue(s string) (value, after string, err error) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] != '"' && s[0] != '\'' {
		line, after, _ := strings.Cut(s, "\n")
		for i := range len(line) {
			if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
				line = line[:i]
				break
			}
		}
		return strings.TrimSpace(line), after, nil
	}
	value, s, closed := unquote(s)
	behind, after, _ := strings.Cut(s, "\n")
	if behind = strings.TrimSpace(behind); !closed || behind != "" && behind[0] != '#' {
		return "", "", errQuote
	}
	return value, after, nil
}

// unquote reads the quoted text at the beginning of s.
func unquote(s string) (value, rest string, closed bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), s[i+1:], true
		case c == '\\' && quote == '"' && i+1 < len(s):
			i++
			b.WriteString(unescape(s[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// unescape is what stands for a backslash and c.
func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\':
		return string(rune(c))
	}
	return string([]byte{'\\', c})
}

package mcppool

import "strings"

// ParseCommand makes a [Server] of a command line, such as
// "npx -y @playwright/mcp --user-agent 'a b'". Words are split and quoted as
// POSIX shells do: blanks separate, single quotes keep everything, double
// quotes keep all but a backslash before one of $ ` " \ and a line break, and a
// backslash outside quotes keeps the next character. There is no shell behind
// it: nothing is expanded, and | & ; < > $ * # stand for themselves.
//
// It fails with a [*ConfigError] when the line has no word, a quote that isn't
// closed, or a backslash at its end.
func ParseCommand(line string) (Server, error) {
	words, err := splitWords(line)
	if err != nil {
		return Server{}, err
	}
	if len(words) == 0 || words[0] == "" {
		return Server{}, &ConfigError{Field: "command line", Reason: "names no command"}
	}
	s := Server{Command: words[0]}
	if len(words) > 1 {
		s.Args = words[1:]
	}
	return s, nil
}

func splitWords(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // a word has begun, maybe an empty quoted one
		fail  = func(reason string) ([]string, error) {
			return nil, &ConfigError{Field: "command line", Reason: reason}
		}
	)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n', '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return fail("has a single quote that isn't closed")
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
			open = true
		case '"':
			open = true
			closed := false
			for i++; i < len(line); i++ {
				if line[i] == '"' {
					closed = true
					break
				}
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("$`\"\\\n", line[i+1]) >= 0 {
					i++
					if line[i] == '\n' {
						continue // a line break behind a backslash joins two lines
					}
				}
				word.WriteByte(line[i])
			}
			if !closed {
				return fail("has a double quote that isn't closed")
			}
		case '\\':
			if i++; i == len(line) {
				return fail("ends in a backslash")
			}
			if line[i] == '\n' {
				continue
			}
			word.WriteByte(line[i])
			open = true
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

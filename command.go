package mcppool

import "github.com/mcppool/mcppool/internal/cmdline"

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
	words, err := cmdline.Split(line)
	if err != nil {
		return Server{}, &ConfigError{Field: "command line", Reason: err.Error()}
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

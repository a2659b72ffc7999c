// Package cmdline splits a command line into words, without a shell.
package cmdline

import (
	"errors"
	"strings"
)

// Split splits line as [POSIX shells] split and quote: blanks separate, single
// quotes keep everything, double quotes keep all but a backslash before one of
// $ ` " \ and a line break, and a backslash outside quotes keeps the next
// character. Nothing is expanded, and | & ; < > $ * # stand for themselves.
//
// The error says what is wrong as a verb of the line: "has a quote that isn't
// closed".
//
// [POSIX shells]: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_02
func Split(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // a word has begun, maybe an empty quoted one
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
				return nil, errors.New("has a single quote that isn't closed")
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
				return nil, errors.New("has a double quote that isn't closed")
			}
		case '\\':
			if i++; i == len(line) {
				return nil, errors.New("ends in a backslash")
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

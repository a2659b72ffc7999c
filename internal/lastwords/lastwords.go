// Package lastwords finds in what a program printed what says best why it failed.
package lastwords

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBytes bounds what Of returns.
const maxBytes = 240

var (
	// escape is a sequence by which a terminal is told colours, places and titles, see
	// ECMA-48, 5.4, and the operating system commands of xterm.
	escape = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)
	reason = regexp.MustCompile(`(?i)\b(error|errors|fatal|panic|exception|traceback|fail(ed|ure)?|cannot|can't|denied|refused|not found|no such|unable|invalid|missing|required|usage)\b|[A-Za-z]Error\b`)
	// frame is a line of a stack trace.
	frame = regexp.MustCompile(`^\s+(at|File|in)\s|^\s*\.\.\.|^goroutine \d+|^\t`)
)

// Of returns one line of at most some 240 bytes of the tail of an output: the last line
// that looks like a reason, or else the last that isn't blank. Whatever a terminal would
// act upon is left out. It is empty when the output is.
func Of(tail string) string {
	var last, why string
	for line := range strings.Lines(escape.ReplaceAllString(tail, "")) {
		clean := strings.TrimSpace(strings.Map(printable, line))
		switch {
		case clean == "":
		case frame.MatchString(line):
			if last == "" {
				last = clean
			}
		default:
			last = clean
			if reason.MatchString(clean) {
				why = clean
			}
		}
	}
	if why == "" {
		why = last
	}
	return cut(why)
}

func printable(r rune) rune {
	switch {
	case r == '\t' || unicode.IsSpace(r):
		return ' '
	case r == utf8.RuneError, !unicode.IsPrint(r):
		return -1
	default:
		return r
	}
}

// cut shortens a line at a character's boundary.
func cut(line string) string {
	if len(line) <= maxBytes {
		return line
	}
	n := maxBytes
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n] + "..."
}

// Sentence is how a process ended, if it has, and what it said last, for the end of an
// error's line.
func Sentence(exit, stderr, stdout string) string {
	var b strings.Builder
	if exit != "" {
		b.WriteString(" (" + exit + ")")
	}
	if words := Of(stderr); words != "" {
		b.WriteString("; stderr: " + words)
	}
	if words := Of(stdout); words != "" {
		b.WriteString("; stdout: " + words)
	}
	return b.String()
}

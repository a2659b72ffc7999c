package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what one text of a server or of a file takes up, in bytes.
const maxText = 1000

// plain makes a text that somebody else wrote fit for a terminal: one line, and
// nothing that moves its cursor.
func plain(s string) string {
	return cut(strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " "), maxText)
}

// cut returns at most n bytes of s and says so if that isn't all of it.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func seconds(ms int64) string { return fmt.Sprintf("%.2f s", float64(ms)/1000) }

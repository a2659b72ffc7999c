package keyed

import (
	"strconv"
	"strings"
)

// Scope makes one name of two ids, such that no two pairs have the same.
func Scope(project, thread string) string {
	return strconv.Itoa(len(project)) + ":" + project + ":" + thread
}

// ParseScope undoes it.
func ParseScope(scope string) (project, thread string, ok bool) {
	length, rest, found := strings.Cut(scope, ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || len(rest) < n+2 || rest[n] != ':' || strconv.Itoa(n) != length {
		return "", "", false
	}
	return rest[:n], rest[n+1:], true
}

package toolbox

import (
	"slices"
	"strings"
)

// Filter says which tools of a server may be used. In names, * stands for any
// text. The zero value allows all.
type Filter struct {
	// Include names the only tools that are allowed; nil means all, and empty
	// but not nil none.
	Include []string
	// Exclude names tools that aren't allowed, whatever Include says.
	Exclude []string
}

// Allows reports whether the tool may be listed and called.
func (f Filter) Allows(tool string) bool {
	matches := func(pattern string) bool { return matchStar(pattern, tool) }
	return (f.Include == nil || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

// equal reports whether both allow the same by the same words.
func (f Filter) equal(o Filter) bool {
	return slices.Equal(f.Include, o.Include) && (f.Include == nil) == (o.Include == nil) && slices.Equal(f.Exclude, o.Exclude)
}

// matchStar reports whether name is pattern with some text for each *.
func matchStar(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, last)
}

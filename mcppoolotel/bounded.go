package mcppoolotel

import (
	"strings"
	"sync"
	"unicode"
)

// maxText bounds every text that comes from elsewhere, in bytes.
const maxText = 256

// text makes a text of a server, a model or a caller fit for an attribute: one
// line that can be printed. What isn't UTF-8 would cost an exporter its whole
// batch.
func text(s string) string {
	const replacement = unicode.ReplacementChar
	if len(s) > maxText {
		s = s[:maxText] + string(replacement)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return replacement
	}, s)
}

// maxCodes is how many JSON-RPC error codes the metrics show.
const maxCodes = 50

// bounded lets a number of different values through, the first that come.
type bounded struct {
	max  int
	mu   sync.Mutex // protects seen
	seen map[string]struct{}
}

func newBounded(limit int) *bounded { return &bounded{max: limit, seen: make(map[string]struct{})} }

// of returns value, or what stands for those that are too many; empty when there
// are to be none.
func (b *bounded) of(value string) string {
	if b.max < 0 {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.seen[value]; known {
		return value
	}
	if len(b.seen) >= b.max {
		return other
	}
	b.seen[value] = struct{}{}
	return value
}

// Package label makes the names by which people tell servers apart.
package label

import (
	"cmp"
	"encoding/hex"
	"maps"
	"net/url"
	"strings"

	"github.com/mcppool/mcppool/internal/keyed"
	"github.com/mcppool/mcppool/internal/proc"
)

// digits is how many of a digest's digits are shown.
const digits = 12

// Hex is the part of a digest that is shown.
func Hex(d keyed.Digest) string { return hex.EncodeToString(d[:digits/2]) }

// Numbered is a name that no other digest has.
func Numbered(name string, d keyed.Digest) string { return name + "-" + Hex(d) }

// Plain is a name without the digits that it may have of Numbered.
func Plain(name string) string {
	i := len(name) - len("-") - digits
	if i <= 0 || name[i] != '-' {
		return name
	}
	if _, err := hex.DecodeString(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

// Base is the name of a server that has none: its program's, or its host's.
func Base(command, address string) string {
	name := "invalid"
	switch {
	case address != "":
		name = "http"
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			name = u.Hostname()
		}
	case command != "":
		name = cmp.Or(proc.BaseName(command), name)
	}
	return Word(name)
}

// Word makes a name a word of a log line, without what could break one.
func Word(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '"' || r == '=' {
			return '_'
		}
		return r
	}, name)
}

// Book remembers who has a name. Its owner's lock protects it. The zero value is an
// empty one.
type Book struct {
	holders map[string]keyed.Digest
	full    int // how many there may be before those not in use are looked for
}

// minNames is how many names are remembered although nobody may have them any more.
const minNames = 64

// Take gives name to d, or one with digits while somebody else has it who is in use.
func (b *Book) Take(name string, d keyed.Digest, inUse func(keyed.Digest) bool) string {
	if holder, ok := b.holders[name]; ok && holder != d && inUse(holder) {
		return Numbered(name, d)
	}
	if len(b.holders) >= max(b.full, minNames) {
		maps.DeleteFunc(b.holders, func(_ string, holder keyed.Digest) bool { return !inUse(holder) })
		b.full = 2 * len(b.holders) // so that each costs a few looks in all
	}
	if b.holders == nil {
		b.holders = make(map[string]keyed.Digest)
	}
	b.holders[name] = d
	return name
}

// Len is how many names are remembered.
func (b *Book) Len() int { return len(b.holders) }

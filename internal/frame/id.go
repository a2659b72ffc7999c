package frame

import (
	"math"
	"strconv"

	"github.com/mcppool/mcppool/internal/jsonscan"
)

// IDKind tells ids apart.
type IDKind uint8

// The kinds of ids. Other is a string that is no integer, a fraction, or
// something that JSON-RPC doesn't allow as an id.
const (
	Missing IDKind = iota
	Null
	Integer
	Other
)

// ID is a message's id, in a form that is equal for equal ids.
type ID struct {
	Kind IDKind
	Int  int64  // of an Integer
	Text string // of an Other: the raw JSON
}

// ParseID reads an id from its JSON, which is valid, or nil if the id is
// missing. 7, 7.0 and "7" are the same id: there are servers that turn the
// number which they were sent into a string or a float.
func ParseID(raw []byte) ID {
	if raw == nil {
		return ID{}
	}
	if string(raw) == "null" {
		return ID{Kind: Null}
	}
	digits := raw
	if raw[0] == '"' {
		digits = raw[1 : len(raw)-1]
	}
	if n, ok := integer(digits); ok {
		return ID{Kind: Integer, Int: n}
	}
	return ID{Kind: Other, Text: string(raw)}
}

// integer returns the integer that a JSON number stands for, if it stands for
// exactly one.
func integer(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 32 || b[0] != '-' && (b[0] < '0' || b[0] > '9') || jsonscan.Valid(b) != nil {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false // beyond 2^53 a float is no one integer
	}
	return int64(f), true
}

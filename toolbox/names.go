package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A tool's name towards the model is mcp__<server>__<tool>, of at most 64
// characters of [a-zA-Z0-9_-], which is what the common model APIs accept. A
// part that can't stand there as it is gets its bad characters replaced and a
// hash of its own behind it.
//
// Each part is a function of the server's id or of the tool's name alone, never
// of what else there is: a name that the model has seen stays right when
// another server comes, goes or is down, and no two of them collide. A part
// that merely looks hashed gets a hash as well, so that a name says by its form
// how to read it.
const (
	namePrefix      = "mcp__"
	nameSeparator   = "__"
	maxName         = 64
	maxServerPart   = 24 // leaves 33 for the tool
	hashDigits      = 8
	hashPart        = len("_") + hashDigits
	maxBothParts    = maxName - len(namePrefix) - len(nameSeparator)
	nothingReadable = "x"
)

// ToolName is the name under which a model sees a tool of the server with this
// id. It is stable: the same everywhere and for ever.
func ToolName(server, tool string) string {
	s := serverPart(server)
	return namePrefix + s + nameSeparator + toolPart(tool, maxBothParts-len(s))
}

// splitName takes a name apart into its parts as they are encoded.
func splitName(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	if !ok || len(name) > maxName {
		return "", "", false
	}
	// The first separator counts: a server's part never contains one or ends in
	// half of one, a tool's may.
	server, tool, ok = strings.Cut(rest, nameSeparator)
	valid := ok && (isHashed(server) || isPlainServer(server)) && (isHashed(tool) || isPlain(tool))
	return server, tool, valid
}

// isHashed reports whether a part stands for something that has to be found by
// encoding it again, rather than for itself.
func isHashed(part string) bool {
	at := len(part) - hashPart
	if at < 1 || part[at] != '_' || !isPlain(part) {
		return false
	}
	for _, c := range []byte(part[at+1:]) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

func serverPart(id string) string {
	if isPlainServer(id) && !isHashed(id) {
		return id
	}
	return hashed(id, maxServerPart)
}

func toolPart(tool string, limit int) string {
	if isPlain(tool) && !isHashed(tool) && len(tool) <= limit {
		return tool
	}
	return hashed(tool, limit)
}

func isPlainServer(id string) bool {
	return isPlain(id) && len(id) <= maxServerPart && !strings.Contains(id, nameSeparator) && !strings.HasSuffix(id, "_")
}

func isPlain(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// hashed is what can be read of s and a hash of all of it.
func hashed(s string, limit int) string {
	sum := sha256.Sum256([]byte(s))
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < limit-hashPart; i++ {
		c := s[i]
		if !isNameByte(c) {
			c = '_'
		}
		if c == '_' && strings.HasSuffix(b.String(), "_") {
			continue // runs of them would look like the separator
		}
		b.WriteByte(c)
	}
	readable := strings.TrimSuffix(b.String(), "_")
	if readable == "" {
		readable = nothingReadable
	}
	return readable + "_" + hex.EncodeToString(sum[:hashDigits/2])
}

// serverPartIs reports whether part is how the server with this id is written.
func serverPartIs(part, id string) bool { return serverPart(id) == part }

// toolPartIs reports whether part, behind the part of its server, is how tool
// is written.
func toolPartIs(server, part, tool string) bool {
	return toolPart(tool, maxBothParts-len(server)) == part
}

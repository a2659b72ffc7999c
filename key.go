package mcppool

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// digest stands for a configuration in maps, labels and logs. It is keyed with
// a secret of the process, so that equal servers have equal digests and a
// digest can't be used to guess at a password by trying.
type digest [16]byte

// key says whose session it is: one server, one scope.
type key struct {
	server digest
	scope  string
}

// digestSecret is one per process rather than one per pool, so that
// [Server.String] needs no pool and agrees with what every pool logs.
var digestSecret = sync.OnceValue(func() (secret [32]byte) {
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	return secret
})

// digestOf is the digest of the whole configuration. It is on the path of every
// call: for a small configuration it allocates nothing.
func digestOf(s *Server) digest {
	var stack [768]byte
	return newFrames(stack[:0]).server(s).sum()
}

// commandDigestOf is the digest of command and args alone, under which servers
// that differ in env and dir are the same.
func commandDigestOf(s *Server) digest {
	var stack [512]byte
	return newFrames(stack[:0]).command(s).text(s.URL).sum()
}

// frames is the encoding that is digested: every text goes in behind its
// length and every list behind its count, so that no two configurations have
// the same encoding.
type frames []byte

func newFrames(buf []byte) frames {
	secret := digestSecret()
	return append(frames(buf), secret[:]...)
}

func (f frames) count(n int) frames { return binary.AppendUvarint(f, uint64(n)) }

func (f frames) text(s string) frames { return append(f.count(len(s)), s...) }

func (f frames) server(s *Server) frames {
	return f.command(s).pairs(s.Env).text(s.Dir).text(s.URL).pairs(s.Header).text(string(s.Protocol))
}

func (f frames) command(s *Server) frames {
	f = f.text(s.Command).count(len(s.Args))
	for _, a := range s.Args {
		f = f.text(a)
	}
	return f
}

// pairs appends a map's pairs by name. Up to sixteen names are sorted on the
// stack, without allocating.
func (f frames) pairs(m map[string]string) frames {
	f = f.count(len(m))
	if len(m) == 0 {
		return f
	}
	var stack [16]string
	names := stack[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f = f.text(name).text(m[name])
	}
	return f
}

// sum is SHA-256 over the secret and the frames, cut to 16 bytes: the cut keeps
// the digest from being extended, which is all that HMAC would add.
func (f frames) sum() (d digest) {
	h := sha256.Sum256(f)
	copy(d[:], h[:])
	return d
}

// Scope names the conversation whose state a session holds, from the ids that a
// chat backend has: no two (project, thread) pairs give the same scope. Without
// a thread it is empty, so that a project's id alone never makes conversations
// share state: a call without scope is a one-shot.
func Scope(project, thread string) string {
	if thread == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(project) + len(thread) + 8)
	b.WriteString(strconv.Itoa(len(project)))
	b.WriteByte(':')
	b.WriteString(project)
	b.WriteByte(':')
	b.WriteString(thread)
	return b.String()
}

// ParseScope gives back what [Scope] made a scope of.
func ParseScope(scope string) (project, thread string, ok bool) {
	length, rest, found := strings.Cut(scope, ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || len(rest) < n+2 || rest[n] != ':' || strconv.Itoa(n) != length {
		return "", "", false
	}
	return rest[:n], rest[n+1:], true
}

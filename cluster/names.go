package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mcppool/mcppool"
)

// namer makes keys of the directory, which tell nothing to who lacks the secret.
type namer struct{ secret []byte }

var base = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// name is the key of what the parts say; framing keeps two from sharing one.
func (n namer) name(kind string, parts ...string) string {
	buf := make([]byte, 0, 256)
	for _, p := range append([]string{kind}, parts...) {
		buf = binary.AppendUvarint(buf, uint64(len(p)))
		buf = append(buf, p...)
	}
	h := hmac.New(sha256.New, n.secret)
	h.Write(buf)
	return base.EncodeToString(h.Sum(nil)[:20])
}

func (n namer) scope(scope string) string { return n.name("scope", scope) }

// server is the key of a whole configuration, as [mcppool.Server] has its identity.
func (n namer) server(s *mcppool.Server) string {
	parts := []string{s.Command, s.Dir, string(s.PrivateDir), s.URL, string(s.Protocol), strconv.Itoa(len(s.Args))}
	parts = append(parts, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Header} {
		parts = append(parts, strconv.Itoa(len(m)))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, k, m[k])
		}
	}
	return n.name("server", parts...)
}

// command is the key of a command and its args, or of a URL.
func (n namer) command(s *mcppool.Server) string {
	return n.name("command", append([]string{s.Command, s.URL}, s.Args...)...)
}

// newIncarnation names a lease, never the same twice: neither for two replicas, nor for
// a replica and its copy after a fork or a restart.
func newIncarnation() string {
	var b [18]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixNano()))
	_, _ = rand.Read(b[8:]) // never fails (crypto/rand)
	return base.EncodeToString(b[:])
}

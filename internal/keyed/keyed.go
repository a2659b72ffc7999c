// Package keyed makes digests of configurations, which give nothing away of the
// secrets in them.
package keyed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// Digest is the digest of some frames. It is keyed with a secret of the process,
// so that equal frames have equal digests and a digest can't be used to guess at
// a password by trying.
type Digest [16]byte

// processSecret is one per process, so that whoever makes a digest agrees with all
// others.
var processSecret = sync.OnceValue(func() (secret [32]byte) {
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	return secret
})

// Frames is the encoding that is digested: every text goes in behind its length
// and every list behind its count, so that no two sequences of values of the same
// types have the same encoding.
type Frames []byte

// New begins the frames in buf, which is empty: with room enough, and on the
// stack, nothing is allocated.
func New(buf []byte) Frames {
	secret := processSecret()
	return append(Frames(buf), secret[:]...)
}

func (f Frames) count(n int) Frames { return binary.AppendUvarint(f, uint64(n)) }

// Text appends a text.
func (f Frames) Text(s string) Frames { return append(f.count(len(s)), s...) }

// Texts appends a list.
func (f Frames) Texts(list []string) Frames {
	f = f.count(len(list))
	for _, s := range list {
		f = f.Text(s)
	}
	return f
}

// Pairs appends a map's pairs by name. Up to sixteen names are sorted on the
// stack, without allocating.
func (f Frames) Pairs(m map[string]string) Frames {
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
		f = f.Text(name).Text(m[name])
	}
	return f
}

// Sum is SHA-256 over the secret and the frames, cut to 16 bytes: the cut keeps
// the digest from being extended, which is all that HMAC would add.
func (f Frames) Sum() (d Digest) {
	h := sha256.Sum256(f)
	copy(d[:], h[:])
	return d
}

package keyed

import (
	"maps"
	"slices"
	"sync/atomic"
	"weak"
)

// Identity is what makes two configurations one. The order of pairs doesn't count, nor
// does the difference between nil and empty.
type Identity struct {
	Command, Dir, PrivateDir, URL, Protocol string

	Args        []string
	Env, Header map[string]string
}

// Frames appends all of it.
func (i *Identity) Frames(f Frames) Frames {
	return f.Text(i.Command).Texts(i.Args).Pairs(i.Env).Text(i.Dir).Text(i.PrivateDir).Text(i.URL).Pairs(i.Header).Text(i.Protocol)
}

// Digest is the digest of all of it. It allocates nothing for a small one.
func (i *Identity) Digest() Digest {
	var stack [768]byte
	return i.Frames(New(stack[:0])).Sum()
}

// CommandDigest is that of what is run or reached alone.
func (i *Identity) CommandDigest() Digest {
	var stack [512]byte
	return New(stack[:0]).Text(i.Command).Texts(i.Args).Text(i.URL).Sum()
}

// Equal compares two.
func (i *Identity) Equal(o *Identity) bool {
	return i.sameButPairs(o) && maps.Equal(i.Env, o.Env) && maps.Equal(i.Header, o.Header)
}

func (i *Identity) sameButPairs(o *Identity) bool {
	return i.Command == o.Command && i.Dir == o.Dir && i.PrivateDir == o.PrivateDir && i.URL == o.URL && i.Protocol == o.Protocol &&
		slices.Equal(i.Args, o.Args)
}

// sum is equal for equal identities, and rarely for others. It looks at lengths and
// ends of texts, since all of them are compared afterwards.
func (i *Identity) sum() uint64 {
	h := sumOf(i.Command) ^ sumOf(i.URL)
	for _, arg := range i.Args {
		h = h*prime + sumOf(arg)
	}
	for name, value := range i.Env { // in any order
		h += (sumOf(name)*prime ^ sumOf(value)) * prime
	}
	return h ^ h>>32
}

const prime = 0x9e3779b97f4a7c15

func sumOf(s string) uint64 {
	h := uint64(len(s)) * prime
	if len(s) >= 8 { // in one load
		e := s[len(s)-8:]
		h ^= uint64(e[0]) | uint64(e[1])<<8 | uint64(e[2])<<16 | uint64(e[3])<<24 |
			uint64(e[4])<<32 | uint64(e[5])<<40 | uint64(e[6])<<48 | uint64(e[7])<<56
		return h * prime
	}
	for _, c := range []byte(s) {
		h = h<<8 ^ uint64(c)
	}
	return h * prime
}

// Known finds the digests of identities that are in use faster than they are made: it
// remembers some, and compares. Its zero value knows none. Its methods may be called from
// any goroutine.
type Known struct {
	slots [256]atomic.Pointer[known]
}

type known struct {
	sum      uint64
	digest   Digest
	identity weak.Pointer[Kept]
}

// Kept is an identity as Known compares it with others. It is in Known as long as
// somebody else holds it.
type Kept struct {
	Identity
	env, header []pair // a list is gone through faster than a map
}

type pair struct{ name, value string }

func pairsOf(m map[string]string) (list []pair) {
	for name, value := range m {
		list = append(list, pair{name, value})
	}
	return list
}

func same(list []pair, m map[string]string) bool {
	for _, p := range list {
		if value, ok := m[p.name]; !ok || value != p.value {
			return false
		}
	}
	return len(list) == len(m)
}

// Digest is that of i.
func (k *Known) Digest(i *Identity) Digest {
	sum := i.sum()
	if n := k.slots[sum%uint64(len(k.slots))].Load(); n != nil && n.sum == sum {
		o := n.identity.Value()
		if o != nil && o.sameButPairs(i) && same(o.env, i.Env) && same(o.header, i.Header) {
			return n.digest
		}
	}
	return i.Digest()
}

// Keep remembers the digest of i, which must not change any more, as long as what it
// returns is held.
func (k *Known) Keep(i Identity, d Digest) *Kept {
	kept := &Kept{i, pairsOf(i.Env), pairsOf(i.Header)}
	sum := i.sum()
	k.slots[sum%uint64(len(k.slots))].Store(&known{sum, d, weak.Make(kept)})
	return kept
}

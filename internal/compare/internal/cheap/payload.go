package cheap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// What the servers answer with: each is the same in every process and run.

var words = strings.Fields(`the request was read from a page of results and then written to disk while
	func return if err nil for range value struct session server client open close file line column
	warning deprecated module package version update install build test passed failed skipped took`)

// Text returns n bytes as tools return them: lines of about 80 bytes, every
// fourth with something in quotes, every sixteenth with a letter that isn't
// ASCII.
func Text(n int) string {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.Grow(n + 128)
	for line := 0; b.Len() < n; line++ {
		begin := b.Len()
		if line%4 == 0 {
			b.WriteString(`"name": "` + words[rnd.IntN(len(words))] + `" `)
		}
		if line%16 == 0 {
			b.WriteString("café ")
		}
		for b.Len()-begin < 74 {
			b.WriteString(words[rnd.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	// No letter may be cut in two.
	return strings.ToValidUTF8(b.String()[:n], "..")[:n]
}

// Image returns n bytes of base64; n is a multiple of 4.
func Image(n int) string {
	raw := make([]byte, n/4*3)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}

// Quoted returns s as most servers encode it, without escapes for HTML.
func Quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("bug: a string can't be encoded: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}

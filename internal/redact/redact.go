// Package redact blanks known secrets in what is to be shown.
package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Source is a configuration that holds secrets.
type Source struct {
	Args   []string
	Env    map[string]string
	URL    string
	Header map[string]string
}

// Redactor blanks the secrets of one configuration. It may be used from any
// goroutine.
type Redactor struct {
	known atomic.Pointer[known] // nil until it is needed, as most configurations show nothing

	mu        sync.Mutex // protects the fields below
	source    Source
	inherited []Source
}

// known are the secrets of a configuration.
type known struct {
	found  []string // as they may be written, the longest first
	blanks *strings.Replacer
}

const blank = "[redacted]"

// New keeps s, which must not change, until it is needed. It takes as secrets: env
// values and headers, unless they are so short that blanking them would garble the
// text and their name doesn't say that they are secret; arguments that follow or
// contain a flag or a name of that kind; userinfo and query values of URLs, wherever
// they are; arguments and parts of a URL's path that look random, or begin as
// well-known tokens do; and the lines of what has several. Each is known as it is,
// and as it is escaped in JSON, in quotes and in URLs.
func New(s Source) *Redactor { return &Redactor{source: s} }

// Inherit adds what a child gets of the host's environment: what was asked for by name
// is as secret as the configuration's own env; of the rest, what its name or its look
// says to be secret.
func (r *Redactor) Inherit(asked, rest map[string]string) {
	if len(asked)+len(rest) == 0 {
		return
	}
	more := Source{Env: make(map[string]string, len(asked)+len(rest))}
	maps.Copy(more.Env, asked)
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if value := rest[name]; looksSecret(name) || looksRandom(value) {
			more.Env[name] = value
		} else {
			more.Args = append(more.Args, value) // which may be a URL with a password
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.inherited {
		if maps.Equal(s.Env, more.Env) && slices.Equal(s.Args, more.Args) {
			return
		}
	}
	r.inherited = append(r.inherited, more)
	r.known.Store(nil)
}

func (r *Redactor) secrets() *known {
	if k := r.known.Load(); k != nil {
		return k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := collect(r.source)
	for _, s := range r.inherited {
		maps.Copy(all, collect(s))
	}
	k := &known{found: slices.Collect(maps.Keys(all))}
	// The longest first, so that none is left in part.
	slices.SortFunc(k.found, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(k.found))
	for _, secret := range k.found {
		pairs = append(pairs, secret, blank)
	}
	k.blanks = strings.NewReplacer(pairs...)
	r.known.Store(k)
	return k
}

// Text returns s without the secrets.
func (r *Redactor) Text(s string) string {
	return r.secrets().blanks.Replace(s)
}

// minPiece is how many bytes of a secret Piece knows it by.
const minPiece = 4

// Piece is Text for a piece of a longer text: it may end in the middle of a secret,
// and if it was cut at its front, begin there.
func (r *Redactor) Piece(s string, cut bool) string {
	from, to := 0, len(s) // between them, secrets are whole
	if cut {
		from = r.partAt(s, strings.HasPrefix, func(secret string, n int) string { return secret[len(secret)-n:] })
		for i, secret := r.across(s, from); secret != ""; i, secret = r.across(s, from) {
			from = i + len(secret)
		}
	}
	to -= r.partAt(s, strings.HasSuffix, func(secret string, n int) string { return secret[:n] })
	for i, secret := r.across(s, to); secret != ""; i, secret = r.across(s, to) {
		to = i
	}
	if from > to {
		return blank
	}
	clean := r.Text(s[from:to])
	if from > 0 {
		clean = blank + clean
	}
	if to < len(s) {
		clean += blank
	}
	return clean
}

// partAt is the length of the longest part of a secret at an end of s.
func (r *Redactor) partAt(s string, isAt func(s, part string) bool, part func(secret string, n int) string) int {
	longest := 0
	for _, secret := range r.secrets().found {
		for n := min(len(secret)-1, len(s)); n > max(longest, minPiece-1); n-- {
			if isAt(s, part(secret, n)) {
				longest = n
			}
		}
	}
	return longest
}

// across finds a whole secret in s that goes across a place.
func (r *Redactor) across(s string, place int) (at int, secret string) {
	for _, secret := range r.secrets().found {
		begin := max(0, place-len(secret)+1)
		end := min(len(s), place+len(secret)-1)
		if begin >= end {
			continue
		}
		if i := strings.Index(s[begin:end], secret); i >= 0 {
			return begin + i, secret
		}
	}
	return 0, ""
}

// JSON returns raw without the secrets in its strings and names. It is raw itself
// when there are none.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw // nothing, since a part of a message is JSON
	}
	changed := false
	v = r.value(v, &changed)
	if !changed {
		return raw
	}
	clean, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return clean
}

func (r *Redactor) value(v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		clean := r.Text(v)
		*changed = *changed || clean != v
		return clean
	case []any:
		for i := range v {
			v[i] = r.value(v[i], changed)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, member := range v {
			clean[r.value(name, changed).(string)] = r.value(member, changed)
		}
		return clean
	}
	return v
}

// Value returns v without the secrets in its JSON form: v itself when there are
// none, and nil when it has no such form.
func Value[T any](r *Redactor, v *T) *T {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	if text := string(raw); r.Text(text) == text {
		return v // a secret is known as Marshal writes it, too
	}
	clean := r.JSON(raw)
	if bytes.Equal(clean, raw) {
		return v
	}
	var shown T
	if json.Unmarshal(clean, &shown) != nil {
		return nil
	}
	return &shown
}

// Error returns err with a clean text, if it [Redactor.Tells] a
// secret. What it wraps can still be asked for with errors.Is, but not be got out.
func (r *Redactor) Error(err error) error {
	if !r.Tells(err) {
		return err
	}
	return &redactedError{
		text: r.Text(err.Error()),
		is:   func(target error) bool { return errors.Is(err, target) },
	}
}

// Tells reports whether err, or an error that it wraps, tells a secret.
func (r *Redactor) Tells(err error) bool {
	if err == nil {
		return false
	}
	if text := err.Error(); r.Text(text) != text {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return r.Tells(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), r.Tells)
	}
	return false
}

// redactedError holds the error in a closure, so that %#v doesn't show it.
type redactedError struct {
	text string
	is   func(target error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

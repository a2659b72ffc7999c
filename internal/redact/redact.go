// Package redact blanks known secrets in what is to be shown.
package redact

import (
	"errors"
	"net/url"
	"sort"
	"strings"

	"github.com/mcppool/mcppool/internal/childenv"
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
type Redactor struct{ replacer *strings.Replacer }

const blank = "[redacted]"

// New takes as secrets: env values and headers, unless they are so short that
// blanking them would garble the text and their name doesn't say that they are
// secret; arguments that follow or contain a flag with such a name; and userinfo
// and query values of a URL, in URL and args.
func New(s Source) *Redactor {
	var secrets []string
	add := func(name, value string) {
		if len(value) >= 8 || len(value) >= 3 && looksSecret(name) {
			secrets = append(secrets, value)
		}
	}
	for name, value := range s.Env {
		if !childenv.IsSafe(name) { // a PATH is no secret, and an error that names it helps
			add(name, value)
		}
	}
	for name, value := range s.Header {
		add(name, value)
		if _, credentials, ok := strings.Cut(value, " "); ok { // "Bearer x"
			add(name, credentials)
		}
	}
	flag := ""
	for _, a := range s.Args {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case ok && looksSecret(name):
			add(name, value)
		case looksSecret(flag) && !strings.HasPrefix(a, "-"):
			add(flag, a)
		}
		flag = ""
		if strings.HasPrefix(a, "-") && !ok {
			flag = a
		}
		secrets = append(secrets, urlSecrets(a)...)
	}
	secrets = append(secrets, urlSecrets(s.URL)...)
	// The longest first, so that none is left in part.
	sort.Slice(secrets, func(i, j int) bool { return len(secrets[i]) > len(secrets[j]) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range secrets {
		pairs = append(pairs, secret, blank)
	}
	return &Redactor{strings.NewReplacer(pairs...)}
}

func looksSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "token", "secret", "pass", "pwd", "auth", "cred", "cookie", "session", "dsn"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// urlSecrets are the userinfo and the query values of what may be a URL.
func urlSecrets(raw string) []string {
	if !strings.Contains(raw, "://") {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return []string{raw}
	}
	var secrets []string
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			secrets = append(secrets, u.User.String(), password)
		} else {
			secrets = append(secrets, u.User.String())
		}
	}
	if u.RawQuery != "" {
		secrets = append(secrets, u.RawQuery)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= 3 {
				secrets = append(secrets, v)
			}
		}
	}
	kept := secrets[:0]
	for _, s := range secrets {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// Text gives s without the secrets.
func (r *Redactor) Text(s string) string { return r.replacer.Replace(s) }

// Error gives err with a clean text. What it wraps can still be asked for with
// errors.Is, but not be got out.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	before := err.Error()
	if after := r.Text(before); after != before {
		return &redactedError{text: after, err: err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcppool/mcppool/internal/childenv"
)

// secrets is a set of texts that are to be blanked.
type secrets map[string]struct{}

func collect(src Source) secrets {
	s := make(secrets)
	for name, value := range src.Env {
		if !childenv.IsSafe(name) { // a PATH is no secret, and an error that names it helps
			s.named(name, value)
		}
	}
	for name, value := range src.Header {
		s.named(name, value)
	}
	flag := ""
	for _, a := range src.Args {
		isFlag := strings.HasPrefix(a, "-")
		if looksSecret(flag) && !isFlag {
			s.named(flag, a)
		}
		flag = ""
		if isFlag && !strings.Contains(a, "=") {
			flag = a
		}
		s.within(a)
		if _, value, ok := strings.Cut(a, "="); ok {
			s.unnamed(value)
		} else if !isFlag {
			s.unnamed(a)
		}
	}
	s.urls(src.URL)
	return s
}

// named takes the value of something, with what it consists of.
func (s secrets) named(name, value string) {
	if len(value) >= 8 || len(value) >= 3 && looksSecret(name) {
		s.add(value)
		for line := range strings.Lines(value) { // a key in PEM may be told line by line
			if line = strings.TrimSpace(line); len(line) >= 8 {
				s.add(line)
			}
		}
	}
	if scheme, credentials, ok := strings.Cut(value, " "); ok && (looksSecret(name) || isScheme(scheme)) { // "Bearer x"
		s.part(credentials)
	}
	s.within(value)
}

// assignment is a name that is given a value, as in
//
//	--api-key=x  API_KEY=x  Authorization: Bearer x  --header=X-Key: x
//
// The name ends at the first separator; the value may hold another assignment.
var assignment = regexp.MustCompile(`^[\s,;{"']*([\w.-]+)["']?\s*[:=]\s*((?s:.*))$`)

// member is one of several assignments, as in {"apiKey":"x"} and password=x;user=y.
var member = regexp.MustCompile(`([\w.-]+)["']?\s*[:=]\s*(?:("(?:[^"\\]|\\.)*")|'([^']*)'|([^\s"',;&}]+))`)

// within takes what looks secret inside of a text.
func (s secrets) within(text string) {
	s.urls(text)
	text = anyURL.ReplaceAllString(text, " ") // a host and its port are no assignment
	if m := assignment.FindStringSubmatch(text); m != nil {
		if looksSecret(m[1]) {
			s.named(m[1], m[2])
		} else {
			s.within(m[2])
		}
	}
	for _, m := range member.FindAllStringSubmatch(text, -1) {
		if !looksSecret(m[1]) {
			continue
		}
		for _, value := range m[3:] {
			if len(value) >= 3 && !isScheme(value) {
				s.add(value)
			}
		}
		var value string
		if m[2] != "" && json.Unmarshal([]byte(m[2]), &value) == nil && len(value) >= 3 {
			s.add(value)
			s.add(m[2][1 : len(m[2])-1])
		}
	}
}

// isScheme tells the first word of credentials from what is secret of them.
func isScheme(word string) bool {
	switch strings.ToLower(word) {
	case "basic", "bearer", "digest", "token":
		return true
	}
	return false
}

var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// urls takes the userinfo and the query values of the URLs in a text.
func (s secrets) urls(text string) {
	for _, raw := range anyURL.FindAllString(text, -1) {
		u, err := url.Parse(raw)
		if err != nil {
			s.add(raw)
			continue
		}
		s.userinfo(raw, u.User)
		for segment := range strings.SplitSeq(u.Path, "/") { // as in https://hooks.example/services/<token>
			s.unnamed(segment)
		}
		s.add(u.RawQuery)
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			_, value, _ := strings.Cut(pair, "=")
			s.part(value)
			if value, err := url.QueryUnescape(value); err == nil {
				s.part(value)
			}
		}
	}
}

// userinfo takes that of a URL. A name alone is a token; beside a password it may
// be a word that blanking would take out of everything, such as "root".
func (s secrets) userinfo(raw string, u *url.Userinfo) {
	if u == nil {
		return
	}
	_, rest, _ := strings.Cut(raw, "://")
	written, _, _ := strings.Cut(rest, "@")
	s.add(written)
	s.add(u.String())
	name := u.Username()
	password, has := u.Password()
	if !has || len(name) >= 8 {
		s.part(name)
		writtenName, _, _ := strings.Cut(written, ":")
		s.part(writtenName)
	}
	if has {
		s.add(password)
		_, writtenPassword, _ := strings.Cut(written, ":")
		s.add(writtenPassword)
	}
	// As it goes out in the header Authorization.
	s.add(base64.StdEncoding.EncodeToString([]byte(name + ":" + password)))
}

// unnamed takes a value that nothing says is secret, by its look.
func (s secrets) unnamed(value string) {
	if looksRandom(value) {
		s.add(value)
	}
}

// part takes a part of something unless it is too short to be known by.
func (s secrets) part(value string) {
	if len(value) >= 3 {
		s.add(value)
	}
}

// add takes a secret in all the ways in which it may be written.
func (s secrets) add(secret string) {
	if secret == "" {
		return
	}
	unquote := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	html, err := json.Marshal(secret)
	if err != nil {
		panic("bug: " + err.Error())
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(secret) // as Marshal, which has succeeded
	for _, form := range []string{
		secret,
		unquote(string(html)),
		unquote(strings.TrimSuffix(plain.String(), "\n")),
		unquote(strconv.Quote(secret)),
		unquote(strconv.QuoteToASCII(secret)),
		url.QueryEscape(secret),
		url.PathEscape(secret),
		url.User(secret).String(),
	} {
		s[form] = struct{}{}
	}
}

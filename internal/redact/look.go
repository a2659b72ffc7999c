package redact

import (
	"slices"
	"strings"
	"unicode"
)

// secretWords are what the words in names of secrets end in, as in apiKey,
// GITHUB_TOKEN and --dbpassword.
var secretWords = []string{
	"key", "keys", "token", "tokens", "secret", "secrets", "pass", "passwd", "password", "passwords", "passphrase", "pwd",
	"auth", "authorization", "cred", "creds", "credential", "credentials", "cookie", "cookies", "session", "sessionid", "dsn",
}

// plainWords at the end of a name say that its value is none, as in
// --session-timeout.
var plainWords = []string{"timeout", "ttl", "length", "size", "count", "limit"}

// looksSecret tells the name of a secret.
func looksSecret(name string) bool {
	words := wordsOf(name)
	if len(words) == 0 || slices.Contains(plainWords, words[len(words)-1]) {
		return false
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc(secretWords, func(end string) bool { return strings.HasSuffix(word, end) })
	})
}

// wordsOf returns the words of a name in any of the usual spellings, in lower case.
func wordsOf(name string) []string {
	var spaced strings.Builder
	var last rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// tokenPrefixes are those that well-known issuers give their tokens.
var tokenPrefixes = []string{
	"sk-", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "AIza", "hf_", "npm_", "pypi-", "eyJ",
}

// looksRandom tells a token by its look: it has a long piece that mixes letters and
// digits as no word, version or date does, or begins like a well-known token and
// has a long piece at all. A path or a package name, which have other characters in
// them, doesn't.
func looksRandom(value string) bool {
	known := slices.ContainsFunc(tokenPrefixes, func(p string) bool { return strings.HasPrefix(value, p) })
	found := false
	for piece := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("-_+=.~:", r) }) {
		var digits, letters, changes int
		var last rune
		for _, r := range piece {
			var kind rune
			switch {
			case '0' <= r && r <= '9':
				digits++
				kind = '0'
			case 'a' <= r && r <= 'z':
				letters++
				kind = 'a'
			case 'A' <= r && r <= 'Z':
				letters++
				kind = 'A'
			default:
				return false
			}
			if last != 0 && kind != last {
				changes++
			}
			last = kind
		}
		mixed := len(piece) >= 16 && digits >= 2 && letters >= 4 && changes >= 5
		found = found || mixed || known && len(piece) >= 12
	}
	return found
}

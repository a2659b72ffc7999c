package redact_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/redact"
)

func TestKnownSecretsAreBlankedAndOnlyThey(t *testing.T) {
	for name, tc := range map[string]struct {
		src        redact.Source
		text, want string
	}{
		"env value":            {redact.Source{Env: map[string]string{"X": "hunter2secret"}}, "is hunter2secret!", "is [redacted]!"},
		"short secret":         {redact.Source{Env: map[string]string{"API_KEY": "abc"}}, "abc", "[redacted]"},
		"short, no secret":     {redact.Source{Env: map[string]string{"LEVEL": "warn"}}, "warn", "warn"},
		"too short":            {redact.Source{Env: map[string]string{"API_KEY": "a"}}, "a cat", "a cat"},
		"PATH":                 {redact.Source{Env: map[string]string{"PATH": "/usr/local/bin"}}, "not in /usr/local/bin", "not in /usr/local/bin"},
		"header":               {redact.Source{Header: map[string]string{"X-Id": "0123456789"}}, "0123456789", "[redacted]"},
		"bearer":               {redact.Source{Header: map[string]string{"Authorization": "Bearer abcdef"}}, "token abcdef", "token [redacted]"},
		"argument of a flag":   {redact.Source{Args: []string{"--token", "abcdef", "other"}}, "abcdef other", "[redacted] other"},
		"flag with =":          {redact.Source{Args: []string{"--api-key=abcdef"}}, "abcdef", "[redacted]"},
		"flag without value":   {redact.Source{Args: []string{"--token", "--verbose"}}, "--verbose", "--verbose"},
		"argument of no flag":  {redact.Source{Args: []string{"--port", "12345678"}}, "12345678", "12345678"},
		"URL's userinfo":       {redact.Source{URL: "https://u:pw123@h/"}, "pw123 u:pw123 h", "[redacted] [redacted] h"},
		"URL's query":          {redact.Source{URL: "https://h/?k=v%20w9&x=y"}, "v w9, k=v%20w9&x=y", "[redacted], [redacted]"},
		"URL in args":          {redact.Source{Args: []string{"postgres://u:pw123@h/db"}}, "pw123 db", "[redacted] db"},
		"URL that is none":     {redact.Source{Args: []string{"http://[secret"}}, "http://[secret", "[redacted]"},
		"longest first":        {redact.Source{Env: map[string]string{"A": "12345678", "B": "1234567890"}}, "1234567890", "[redacted]"},
		"nothing known":        {redact.Source{}, "text", "text"},
		"more than once":       {redact.Source{Env: map[string]string{"A": "12345678"}}, "12345678 12345678", "[redacted] [redacted]"},
		"prefix of another":    {redact.Source{Env: map[string]string{"A": "12345678"}}, "123456789", "[redacted]9"},
		"basic in a header":    {redact.Source{Header: map[string]string{"Authorization": "Basic eHl6"}}, "eHl6", "[redacted]"},
		"session in env":       {redact.Source{Env: map[string]string{"SESSION": "s-1"}}, "s-1", "[redacted]"},
		"value of an odd flag": {redact.Source{Args: []string{"-p", "abcdef"}}, "abcdef", "abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, redact.New(tc.src).Text(tc.text))
		})
	}
}

func TestErrorKeepsWhatItIsButNotWhatItSays(t *testing.T) {
	r := redact.New(redact.Source{Env: map[string]string{"TOKEN": "hunter2"}})
	err := &fs.PathError{Op: "open", Path: "/hunter2", Err: fs.ErrNotExist}
	clean := r.Error(err)
	require.EqualError(t, clean, "open /[redacted]: file does not exist")
	require.ErrorIs(t, clean, fs.ErrNotExist)
	var path *fs.PathError
	require.NotErrorAs(t, clean, &path, "it holds the secret")

	plain := errors.New("plain")
	require.Same(t, plain, r.Error(plain))
	require.NoError(t, r.Error(nil))
}

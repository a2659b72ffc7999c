package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
		"env value":               {redact.Source{Env: map[string]string{"X": "hunter2secret"}}, "is hunter2secret!", "is [redacted]!"},
		"short secret":            {redact.Source{Env: map[string]string{"API_KEY": "abc"}}, "abc", "[redacted]"},
		"short, no secret":        {redact.Source{Env: map[string]string{"LEVEL": "warn"}}, "warn", "warn"},
		"too short":               {redact.Source{Env: map[string]string{"API_KEY": "a"}}, "a cat", "a cat"},
		"PATH":                    {redact.Source{Env: map[string]string{"PATH": "/usr/local/bin"}}, "not in /usr/local/bin", "not in /usr/local/bin"},
		"header":                  {redact.Source{Header: map[string]string{"X-Id": "0123456789"}}, "0123456789", "[redacted]"},
		"bearer":                  {redact.Source{Header: map[string]string{"Authorization": "Bearer abcdef"}}, "token abcdef", "token [redacted]"},
		"argument of a flag":      {redact.Source{Args: []string{"--token", "abcdef", "other"}}, "abcdef other", "[redacted] other"},
		"flag with =":             {redact.Source{Args: []string{"--api-key=abcdef"}}, "abcdef", "[redacted]"},
		"flag without value":      {redact.Source{Args: []string{"--token", "--verbose"}}, "--verbose", "--verbose"},
		"random argument":         {redact.Source{Args: []string{"serve", "q7Rt2Xb9LmP4sZ8kV1cN"}}, "q7Rt2Xb9LmP4sZ8kV1cN serve", "[redacted] serve"},
		"random value of a flag":  {redact.Source{Args: []string{"--id=q7Rt2Xb9LmP4sZ8kV1cN"}}, "q7Rt2Xb9LmP4sZ8kV1cN", "[redacted]"},
		"random in a URL's path":  {redact.Source{URL: "https://h/hooks/0f3a9b1c2d4e5f60718293a4b5c6d7e8/mcp"}, "/hooks/0f3a9b1c2d4e5f60718293a4b5c6d7e8/mcp", "/hooks/[redacted]/mcp"},
		"token by its prefix":     {redact.Source{Args: []string{"AKIAIOSFODNNEXAMPLE"}}, "AKIAIOSFODNNEXAMPLE", "[redacted]"},
		"package and version":     {redact.Source{Args: []string{"-y", "@scope/server-everything@2025.11.25-beta.3"}}, "@scope/server-everything@2025.11.25-beta.3", "@scope/server-everything@2025.11.25-beta.3"},
		"name with versions":      {redact.Source{Args: []string{"mcp-server-v2.10.3-linux-amd64-2025"}}, "mcp-server-v2.10.3-linux-amd64-2025", "mcp-server-v2.10.3-linux-amd64-2025"},
		"path":                    {redact.Source{Args: []string{"/srv/a1b2c3d4e5f6a7b8c9d0e1f2/data"}}, "/srv/a1b2c3d4e5f6a7b8c9d0e1f2/data", "/srv/a1b2c3d4e5f6a7b8c9d0e1f2/data"},
		"time":                    {redact.Source{Args: []string{"--since=2025-11-25T10.20.30Z"}}, "2025-11-25T10.20.30Z", "2025-11-25T10.20.30Z"},
		"argument of no flag":     {redact.Source{Args: []string{"--port", "12345678"}}, "12345678", "12345678"},
		"URL's userinfo":          {redact.Source{URL: "https://u:pw123@h/"}, "pw123 u:pw123 h", "[redacted] [redacted] h"},
		"URL's query":             {redact.Source{URL: "https://h/?k=v%20w9&x=y"}, "v w9, k=v%20w9&x=y", "[redacted], [redacted]"},
		"URL in args":             {redact.Source{Args: []string{"postgres://u:pw123@h/db"}}, "pw123 db", "[redacted] db"},
		"URL that is none":        {redact.Source{Args: []string{"http://[secret"}}, "http://[secret", "[redacted]"},
		"longest first":           {redact.Source{Env: map[string]string{"A": "12345678", "B": "1234567890"}}, "1234567890", "[redacted]"},
		"nothing known":           {redact.Source{}, "text", "text"},
		"more than once":          {redact.Source{Env: map[string]string{"A": "12345678"}}, "12345678 12345678", "[redacted] [redacted]"},
		"prefix of another":       {redact.Source{Env: map[string]string{"A": "12345678"}}, "123456789", "[redacted]9"},
		"basic in a header":       {redact.Source{Header: map[string]string{"Authorization": "Basic eHl6"}}, "eHl6", "[redacted]"},
		"session in env":          {redact.Source{Env: map[string]string{"SESSION": "s-1"}}, "s-1", "[redacted]"},
		"value of an odd flag":    {redact.Source{Args: []string{"-p", "abcdef"}}, "abcdef", "abcdef"},
		"header in an argument":   {redact.Source{Args: []string{"-H", "Authorization: Bearer ab cd"}}, "Bearer ab cd, ab cd, Bearer", "[redacted], [redacted], Bearer"},
		"header after a flag":     {redact.Source{Args: []string{"--header=X-Api-Key: abcdef"}}, "abcdef", "[redacted]"},
		"header without space":    {redact.Source{Args: []string{"--header", "X-Api-Key:abcdef"}}, "abcdef", "[redacted]"},
		"variable in an argument": {redact.Source{Args: []string{"run", "-e", "API_KEY=abcdef"}}, "abcdef", "[redacted]"},
		"JSON in an argument":     {redact.Source{Args: []string{`{"port":80,"apiKey":"ab\"cd"}`}}, `ab\"cd ab"cd 80`, "[redacted] [redacted] 80"},
		"connection string":       {redact.Source{Args: []string{"Server=host;Password=abc;User=me"}}, "abc host", "[redacted] host"},
		"quoted in an argument":   {redact.Source{Args: []string{"x password='a c' y"}}, "a c", "[redacted]"},
		"port of a key server":    {redact.Source{Args: []string{"https://key.example.com:8443/x"}}, "8443", "8443"},
		"URL in env":              {redact.Source{Env: map[string]string{"DB": "pg://u:pw123@h/db"}}, "pw123", "[redacted]"},
		"URL in a longer text":    {redact.Source{Args: []string{"see http://h/?a=secret1 and http://h/?a=secret2"}}, "secret1 secret2 see", "[redacted] [redacted] see"},
		"user with a password":    {redact.Source{URL: "https://root:pw123@h/"}, "root", "root"},
		"user without a password": {redact.Source{URL: "https://tok123@h/"}, "tok123", "[redacted]"},
		"long user":               {redact.Source{URL: "https://longname:pw123@h/"}, "longname", "[redacted]"},
		"escaped userinfo":        {redact.Source{URL: "https://tok%40123:pw%2F1@h/"}, "tok@123:pw/1 pw/1 pw%2F1", "tok@123:[redacted] [redacted] [redacted]"},
		"basic of a URL":          {redact.Source{URL: "https://u:pw@h/"}, "Basic dTpwdw==", "Basic [redacted]"},
		"line of several":         {redact.Source{Env: map[string]string{"PEM": "first line\r\nsecond line\n"}}, "second line, first line", "[redacted], [redacted]"},
		"scheme is no secret":     {redact.Source{Env: map[string]string{"X": "Bearer abcdef"}}, "Bearer, abcdef", "Bearer, [redacted]"},
		"as JSON":                 {redact.Source{Env: map[string]string{"X": "ab<\x01\"cdef"}}, `ab<\u0001\"cdef`, "[redacted]"},
		"as JSON for HTML":        {redact.Source{Env: map[string]string{"X": "ab<\x01\"cdef"}}, `ab\u003c\u0001\"cdef`, "[redacted]"},
		"quoted":                  {redact.Source{Env: map[string]string{"X": "abéd\a\"cd"}}, `abéd\a\"cd`, "[redacted]"},
		"quoted as ASCII":         {redact.Source{Env: map[string]string{"X": "abéd\"cd efg"}}, `ab\u00e9d\"cd efg`, "[redacted]"},
		"escaped in a query":      {redact.Source{Env: map[string]string{"X": "ab cd:e/fg"}}, "ab+cd%3Ae%2Ffg", "[redacted]"},
		"escaped in a path":       {redact.Source{Env: map[string]string{"X": "ab cd:e/fg"}}, "ab%20cd:e%2Ffg", "[redacted]"},
		"escaped in a userinfo":   {redact.Source{Env: map[string]string{"X": "ab cd:e/fg"}}, "ab%20cd%3Ae%2Ffg", "[redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, redact.New(tc.src).Text(tc.text))
		})
	}
}

func TestWhatLooksLikeASecretAndWhatDoesNot(t *testing.T) {
	shown := func(args ...string) string {
		return redact.New(redact.Source{Args: args}).Text(args[len(args)-1])
	}
	for _, secret := range []string{
		"q7Rt2Xb9LmP4sZ8kV1cN", "0f3a9b1c2d4e5f60718293a4b5c6d7e8", "123456789:AAF0abcDEF1ghiJKL2mnoPQR3stuVWX4yz",
		"AKIAIOSFODNNEXAMPLE", "ghp_abcdefghijklmnopqrst", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
	} {
		require.Equal(t, "[redacted]", shown(secret))
		require.Equal(t, "--id=[redacted]", shown("--id="+secret))
	}
	for _, plain := range []string{
		"pypi-query-mcp-server", "sk-learn-mcp-server", "npm_search_mcp_server", "hf_dataset_viewer_mcp",
		"Qwen2.5-Coder-7B-Instruct", "Mixtral-8x7B-Instruct-v0.1", "mcp-server-1.2.3-beta.4-linux-x86_64",
		"postgres16-alpine3.20-amd64-r2", "--maxOldSpaceSize=4096", "--viewportSize=1280x720", "web-7d9f8c6b5d-x2x9k",
		"123e4567-e89b-12d3-a456-426614174000", "@scope/server@2025.11.25", "/srv/a1b2c3d4e5f6a7b8c9d0e1f2/data", "2025-11-25T10.20.30Z",
	} {
		require.Equal(t, plain, shown(plain))
	}
	for _, flag := range []string{"--api-key", "--apiKey", "--dbpassword", "--oauth-token", "-token", "--session"} {
		require.Equal(t, "[redacted]", shown(flag, "abcdef"), flag)
	}
	for _, flag := range []string{"--author", "--passive", "--session-timeout", "--keyboard", "--tokenizer", "--authority"} {
		require.Equal(t, "abcdef", shown(flag, "abcdef"), flag)
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

func TestErrorIsCleanWhenOnlyWhatItWrapsTells(t *testing.T) {
	r := redact.New(redact.Source{Env: map[string]string{"TOKEN": "hunter2"}})
	for _, err := range []error{
		&hiding{errors.New("hunter2")},
		&hiding{errors.Join(fs.ErrExist, errors.New("hunter2"))},
	} {
		clean := r.Error(err)
		require.EqualError(t, clean, "hidden")
		require.NoError(t, errors.Unwrap(clean))
		require.NotContains(t, fmt.Sprintf("%#v", clean), "hunter2")
	}
}

// hiding doesn't say what it wraps.
type hiding struct{ err error }

func (e *hiding) Error() string { return "hidden" }
func (e *hiding) Unwrap() error { return e.err }

func TestPieceOfASecretAtAnEndIsBlanked(t *testing.T) {
	r := redact.New(redact.Source{
		Env:    map[string]string{"A": "0123456789", "B": "abcdefghabcdefgh"},
		Header: map[string]string{"Auth": "Bearer xyz-xyz"},
	})
	for name, tc := range map[string]struct {
		cut        bool
		text, want string
	}{
		"no end":               {true, "some 0123456789 text", "some [redacted] text"},
		"back":                 {false, "text 01234567", "text [redacted]"},
		"front":                {true, "3456789 text", "[redacted] text"},
		"front that is whole":  {false, "3456789 text", "3456789 text"},
		"both":                 {true, "6789 012345", "[redacted] [redacted]"},
		"all":                  {true, "345678", "345678"}, // neither a front nor a back
		"too short":            {true, "789 text 012", "789 text 012"},
		"empty":                {true, "", ""},
		"whole":                {true, "0123456789", "[redacted]"},
		"longest":              {false, "text Bearer xyz-xy", "text [redacted]"},
		"whole across a back":  {false, "text abcdefghabcdefgh", "text [redacted]"},
		"whole across a front": {true, "abcdefghabcdefgh text", "[redacted] text"},
		"overlapping":          {true, "6789abcdefghabcdef", "[redacted][redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, r.Piece(tc.text, tc.cut))
		})
	}
}

func TestPieceNeverTellsMoreThanAFewBytesOfASecret(t *testing.T) {
	const secret = "s3cr3t-0123456789-s3cr3t"
	r := redact.New(redact.Source{Env: map[string]string{"A": secret, "B": "Bearer " + secret}})
	text := "before " + secret + " between " + secret + " after"
	for i := range len(text) {
		for j := i; j <= len(text); j++ {
			// A piece of four bytes could be anything.
			shown := r.Piece(text[i:j], true)
			for n := 4; n <= len(secret); n++ {
				if j-i >= len(secret) {
					require.NotContains(t, shown, secret[:n])
					require.NotContains(t, shown, secret[len(secret)-n:])
				}
			}
		}
	}
}

func TestJSONIsCleanInStringsAndNames(t *testing.T) {
	r := redact.New(redact.Source{Env: map[string]string{"A": `hunter"2-hunter`}})
	for raw, want := range map[string]string{
		`{"a":["hunter\"2-hunter",{"x hunter\"2-hunter":12345678901234567890}]}`: `{"a":["[redacted]",{"x [redacted]":12345678901234567890}]}`,
		`{"b": 1, "a": "<"}`: `{"b": 1, "a": "<"}`,
		`null`:               `null`,
		``:                   ``,
	} {
		require.Equal(t, want, string(r.JSON(json.RawMessage(raw))))
	}
	require.Nil(t, r.JSON(nil))
}

func TestValueIsACleanCopy(t *testing.T) {
	type info struct{ Name, Other string }
	r := redact.New(redact.Source{Env: map[string]string{"A": "hunter2-hunter"}})
	told := &info{"hunter2-hunter", "x"}
	require.Equal(t, &info{"[redacted]", "x"}, redact.Value(r, told))
	require.Equal(t, "hunter2-hunter", told.Name)
	plain := &info{"x", "y"}
	require.Same(t, plain, redact.Value(r, plain))
	require.Nil(t, redact.Value(r, (*info)(nil)))
	formless := func() {}
	require.Nil(t, redact.Value(r, &formless))
}

package confcheck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/confcheck"
)

func TestFaultsNameTheFieldAndNeverItsValue(t *testing.T) {
	type fault func() (field, reason string)
	child := func(command, dir string, args []string, env map[string]string) fault {
		return func() (string, string) { return confcheck.Child(command, dir, args, env) }
	}
	remote := func(url string, header map[string]string) fault {
		return func() (string, string) { return confcheck.Remote(url, header) }
	}
	for want, f := range map[string]fault{
		"":              child("c", "/d", []string{"a"}, map[string]string{"A": "b"}),
		"Command":       child("secret\x00", "", nil, nil),
		"Dir":           child("c", "secret\x00", nil, nil),
		"Args[1]":       child("c", "", []string{"a", "secret\x00"}, nil),
		`Env[""]`:       child("c", "", nil, map[string]string{"": "secret"}),
		`Env["a=b"]`:    child("c", "", nil, map[string]string{"a=b": "secret"}),
		`Env["a"]`:      child("c", "", nil, map[string]string{"a": "secret\x00"}),
		"URL":           remote("secret://x", nil),
		`Header["a b"]`: remote("http://x", map[string]string{"a b": "secret"}),
		`Header["a"]`:   remote("http://x", map[string]string{"a": "secret\n"}),
	} {
		field, reason := f()
		require.Equal(t, want, field)
		require.Equal(t, want == "", reason == "")
		require.NotContains(t, field+reason, "secret")
	}
	for _, url := range []string{"http://x", "https://x/y"} {
		field, _ := confcheck.Remote(url, map[string]string{"A": "b"})
		require.Empty(t, field)
	}
	for _, url := range []string{"http://[secret", "http:///secret", "secret"} {
		field, reason := confcheck.Remote(url, nil)
		require.Equal(t, "URL", field)
		require.NotContains(t, reason, "secret")
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyWhatIsBeyondALimitIsReported(t *testing.T) {
	code := "package p\n\nfunc f(a, b int, c string) {\n\t_ = a\n}\n\nfunc (t T) g(a, b int) {}\n\ntype T struct{}\n"
	for name, c := range map[string]struct {
		file string
		max  limits
		want []string
	}{
		"at the limits":       {"p.go", limits{file: 9, function: 3, params: 3}, nil},
		"a long file":         {"p.go", limits{file: 8, function: 3, params: 3}, []string{"p.go has 9 lines, more than 8"}},
		"a long function":     {"p.go", limits{file: 9, function: 2, params: 3}, []string{"p.go:3:1: f has 3 lines, more than 2"}},
		"many parameters":     {"p.go", limits{file: 9, function: 3, params: 2}, []string{"p.go:3:1: f has 3 parameters, more than 2"}},
		"a test's functions":  {"p_test.go", limits{test: 9}, nil},
		"a long file of test": {"p_test.go", limits{test: 8}, []string{"p_test.go has 9 lines, more than 8"}},
		"no Go":               {"p.txt", limits{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "below"), 0o700))
			path := filepath.Join(dir, "below", c.file)
			require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
			found, err := c.max.check(dir)
			require.NoError(t, err)
			for i := range found {
				found[i] = strings.TrimPrefix(found[i], filepath.Dir(path)+string(filepath.Separator))
			}
			require.Equal(t, c.want, found)
		})
	}
}

func TestCodeThatDoesNotParseIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte("package"), 0o600))
	_, err := (&limits{}).check(dir)
	require.Error(t, err)
}

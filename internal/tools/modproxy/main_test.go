package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files, by their slash-separated names, and returns their directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func TestAFileIsInTheInnermostModuleAlone(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod": "module " + core + "\n", "a.go": "", "in/b.go": "", ".git/x": "", "in.go/c.go": "",
		"in/sub/go.mod": "module " + core + "/in/sub\nrequire " + core + " v1.2.3\n", "in/sub/deep/d.go": "", "in/subway.go": "",
	})
	dir := t.TempDir()
	version, err := write(root, dir)
	require.NoError(t, err)
	require.Equal(t, "v1.2.3", version)
	for module, want := range map[string][]string{
		core:             {"go.mod", "a.go", "in/b.go", "in.go/c.go", "in/subway.go"},
		core + "/in/sub": {"go.mod", "deep/d.go"},
	} {
		at := filepath.Join(dir, filepath.FromSlash(module), "@v")
		z, err := zip.OpenReader(filepath.Join(at, "v1.2.3.zip"))
		require.NoError(t, err)
		var names []string
		for _, f := range z.File {
			names = append(names, f.Name)
		}
		require.NoError(t, z.Close())
		for i := range want {
			want[i] = module + "@v1.2.3/" + want[i]
		}
		require.ElementsMatch(t, want, names)
		list, err := os.ReadFile(filepath.Join(at, "list"))
		require.NoError(t, err)
		require.Equal(t, "v1.2.3\n", string(list))
	}
}

func TestModulesThatRequireTwoVersionsAreRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"two":         {"go.mod": "", "a/go.mod": "require " + core + " v1.0.0", "b/go.mod": "require (\n\t" + core + " v1.1.0\n)"},
		"go.work too": {"go.mod": "", "a/go.mod": "require " + core + " v1.0.0", "go.work": "replace " + core + " v1.1.0 => ./"},
		"none":        {"go.mod": "module " + core, "a/go.mod": "module " + core + "/a\n// " + core + " v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := write(tree(t, files), t.TempDir())
			require.ErrorContains(t, err, "one version")
		})
	}
}

//go:build unix

package proc_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

func writeFile(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), mode))
	return name
}

func TestLookPathSearchesThePathOfTheEnvironmentGiven(t *testing.T) {
	dir := t.TempDir()
	srv := writeFile(t, filepath.Join(dir, "b", "srv"), "", 0o700)
	writeFile(t, filepath.Join(dir, "c", "srv"), "", 0o700)
	denied := writeFile(t, filepath.Join(dir, "a", "srv"), "", 0o600)
	t.Setenv("PATH", filepath.Dir(srv))

	path := func(dirs string) []string { return []string{"PATH=/nowhere", "PATH=" + dirs} }
	got, err := proc.LookPath("srv", "", path(dir+"/none:"+dir+"/a:"+dir+"/b:"+dir+"/c"))
	require.NoError(t, err)
	require.Equal(t, srv, got)

	for _, env := range [][]string{nil, {"PATH="}, path(dir), path("b"), path(":.")} {
		t.Chdir(dir)
		_, err = proc.LookPath("srv", dir, env)
		require.ErrorIs(t, err, exec.ErrNotFound)
		var lookErr *proc.LookError
		require.ErrorAs(t, err, &lookErr)
		require.Equal(t, "srv", lookErr.Name)
		require.True(t, lookErr.OnPath)
	}

	_, err = proc.LookPath("srv", "", path(filepath.Dir(denied)))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, denied)
	require.ErrorContains(t, err, `on the PATH "`+filepath.Dir(denied)+`"`)
}

func TestLookPathTakesAFileWithASeparatorRelativeToDir(t *testing.T) {
	dir := t.TempDir()
	srv := writeFile(t, filepath.Join(dir, "bin", "srv"), "", 0o700)
	writeFile(t, filepath.Join(dir, "bin", "text"), "", 0o600)

	for _, file := range []string{"./srv", "../bin/srv", srv} {
		got, err := proc.LookPath(file, filepath.Join(dir, "bin"), nil)
		require.NoError(t, err)
		require.Equal(t, srv, got)
	}
	t.Chdir(dir)
	for _, at := range []string{"", "bin/.."} {
		got, err := proc.LookPath("bin/srv", at, nil)
		require.NoError(t, err)
		require.True(t, filepath.IsAbs(got))
	}

	_, err := proc.LookPath("./missing", dir, nil)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.EqualError(t, err, `command "missing": no such executable`)
	_, err = proc.LookPath("./text", filepath.Join(dir, "bin"), nil)
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = proc.LookPath("./bin", dir, nil)
	require.Error(t, err)
	_, err = proc.LookPath("", dir, nil)
	require.ErrorIs(t, err, exec.ErrNotFound)
}

func TestOfACommandOnlyTheProgramsBaseNameIsInErrors(t *testing.T) {
	dir := t.TempDir()
	denied := writeFile(t, filepath.Join(dir, "s3cret", "srv"), "", 0o600)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "s3cret", "dir"), 0o700))
	for command, want := range map[string]string{
		"srv --token=s3cret":                `command "srv"...: no such executable; it holds blanks, and arguments go in Args`,
		"/opt/srv --key s3cret/s3cret":      `command "srv"...: no such executable; it holds blanks, and arguments go in Args`,
		"\tsrv\ts3cret":                     `command "srv"...: no such executable; it holds blanks, and arguments go in Args`,
		"/s3cret/srv":                       `command "srv": no such executable`,
		"s3cret/none/srv":                   `command "srv": no such executable`,
		denied:                              `command "srv": permission denied`,
		filepath.Join(dir, "s3cret", "dir"): `command "dir": is a directory`,
	} {
		_, err := proc.LookPath(command, dir, []string{"PATH=" + dir})
		require.EqualError(t, err, want)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "s3cret")
	}
	broken := writeFile(t, filepath.Join(dir, "s3cret", "broken"), "no program", 0o700)
	_, err := proc.Start(proc.Config{Path: broken})
	require.ErrorContains(t, err, "start broken: exec format error")
}

func TestMissingInterpreterIsNamedAsTheCause(t *testing.T) {
	script := writeFile(t, filepath.Join(t.TempDir(), "srv"), "#!/no/such/interpreter\n", 0o700)
	_, err := proc.Start(proc.Config{Path: script})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "interpreter")
}

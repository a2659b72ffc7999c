package proc

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// LookPath finds the executable that file names and returns its absolute path.
//
// A file with a path separator in it is taken relative to dir ("" is the
// host's working directory). Any other is looked for on the PATH that env sets
// (and with the PATHEXT it sets, on Windows): what is run then depends on the
// server's environment alone, never on the host's. Relative entries of PATH are
// skipped, as what they name depends on where one stands.
//
// The error is a *[LookError]. It wraps exec.ErrNotFound, or fs.ErrPermission
// where a file of that name was found but can't be run.
func LookPath(file, dir string, env []string) (string, error) {
	failed := LookError{Name: BaseName(file), Blanks: strings.ContainsAny(file, blanks), Err: exec.ErrNotFound}
	if file == "" {
		return "", &failed
	}
	exts := executableExts(env)
	if hasSeparator(file) {
		name := file
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		name, err := filepath.Abs(name)
		if err == nil {
			name, err = findExecutable(name, exts)
		}
		if err != nil {
			failed.Err = notFound(err)
			return "", &failed
		}
		return name, nil
	}
	path := getenv(env, "PATH")
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue
		}
		name, err := findExecutable(filepath.Join(entry, file), exts)
		if err == nil {
			return name, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			failed.Err = err
		}
	}
	failed.Path, failed.OnPath = path, true
	return "", &failed
}

// notFound leaves the path out of an error of the system, which is the command's.
func notFound(err error) error {
	var of *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exec.ErrNotFound
	case errors.As(err, &of):
		return of.Err
	}
	return err
}

// getenv returns the value of the last entry of env that sets key, as the
// child would see it.
func getenv(env []string, key string) string {
	for _, e := range slices.Backward(env) {
		if value, ok := cutEnv(e, key); ok {
			return value
		}
	}
	return ""
}

package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func hasSeparator(file string) bool { return strings.ContainsAny(file, `\/:`) }

// runnable are the extensions of what can be started as a process. PATHEXT may
// name more, which a shell opens with other programs.
var runnable = []string{".com", ".exe", ".bat", ".cmd"}

// executableExts returns the runnable extensions in PATHEXT's order.
func executableExts(env []string) []string {
	list := getenv(env, "PATHEXT")
	if list == "" {
		return runnable
	}
	var exts []string
	for ext := range strings.SplitSeq(strings.ToLower(list), ";") {
		if slices.Contains(runnable, ext) {
			exts = append(exts, ext)
		}
	}
	return exts
}

// findExecutable returns name if it is a file with one of exts, or else name
// with the first of exts that makes it one.
func findExecutable(name string, exts []string) (string, error) {
	if slices.Contains(exts, strings.ToLower(filepath.Ext(name))) && isFile(name) {
		return name, nil
	}
	for _, ext := range exts {
		if isFile(name + ext) {
			return name + ext, nil
		}
	}
	if isFile(name) {
		return "", &fs.PathError{Op: "exec", Path: name, Err: syscall.EACCES} // no extension that can be run
	}
	return "", &fs.PathError{Op: "exec", Path: name, Err: syscall.ENOENT}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

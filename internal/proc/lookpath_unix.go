//go:build unix

package proc

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

func hasSeparator(file string) bool { return strings.Contains(file, "/") }

func executableExts([]string) []string { return nil }

func findExecutable(name string, _ []string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", &fs.PathError{Op: "exec", Path: name, Err: syscall.EISDIR}
	case info.Mode()&0o111 == 0:
		return "", &fs.PathError{Op: "exec", Path: name, Err: syscall.EACCES}
	}
	return name, nil
}

func cutEnv(entry, key string) (string, bool) {
	if len(entry) > len(key) && entry[len(key)] == '=' && entry[:len(key)] == key {
		return entry[len(key)+1:], true
	}
	return "", false
}

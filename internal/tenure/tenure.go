// Package tenure keeps what a host has outside of its memory, such as folders, in such
// a way that others can tell whether that host still lives.
//
// Below one base folder each host has a file that it keeps locked, ID.lock, and
// beside it a folder of its own, ID. The kernel drops the lock when the host ends,
// however it does. Whoever gets the lock of another may then remove what it left. An
// age is no proof of death, and is never looked at.
package tenure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const lockSuffix = ".lock"

// Tenure is a folder whose lock is held.
type Tenure struct {
	dir  string
	lock *os.File
}

// errTaken says that another holds a lock, or has just removed it.
var errTaken = errors.New("is locked by another")

// DefaultBase returns the base folder of this user, below the system's for temporary
// files.
func DefaultBase() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("mcppool-%d", os.Getuid()))
}

// Begin makes the folder of a host below base, which is made as well. Base must be this
// user's alone (on Windows: where the user says), as others could otherwise put a link
// in the place of a folder.
func Begin(base, id string) (*Tenure, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if err := checkOwner(base); err != nil {
		return nil, err
	}
	t, err := take(filepath.Join(base, id+lockSuffix), os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(t.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Leave()
		return nil, err
	}
	return t, nil
}

// take locks a file. It fails if another holds the lock, or has removed the file
// between its opening and its locking.
func take(path string, flag int) (*Tenure, error) {
	f, err := openLocked(path, flag)
	if err != nil {
		return nil, err
	}
	now, err := os.Lstat(path)
	own, ownErr := f.Stat()
	if err != nil || ownErr != nil || !os.SameFile(now, own) {
		f.Close()
		return nil, errTaken
	}
	return &Tenure{dir: strings.TrimSuffix(path, lockSuffix), lock: f}, nil
}

// Ended takes over the folders of the hosts below base that are gone. The caller ends or
// leaves each.
func Ended(base string) []*Tenure {
	if checkOwner(base) != nil {
		return nil
	}
	locks, _ := filepath.Glob(filepath.Join(globQuote(base), "*"+lockSuffix))
	var ended []*Tenure
	for _, path := range locks {
		if t, err := take(path, 0); err == nil {
			ended = append(ended, t)
		}
	}
	return ended
}

var globQuoter = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

func globQuote(path string) string {
	if filepath.Separator == '\\' {
		return path // Windows has no escape
	}
	return globQuoter.Replace(path)
}

// ID is that which Begin was called with.
func (t *Tenure) ID() string { return filepath.Base(t.dir) }

// Dir is the folder.
func (t *Tenure) Dir() string { return t.dir }

// End removes the folder, and then its lock. The error is why something is left; the
// lock is then left too, for the next who looks.
func (t *Tenure) End() error {
	defer t.lock.Close()
	if err := Remove(t.dir); err != nil {
		return err
	}
	return removeLocked(t.lock)
}

// Leave gives up the lock, and removes nothing.
func (t *Tenure) Leave() { t.lock.Close() }

// Remove removes a folder with all it holds, folders that may not be written to
// included. It follows no link, and refuses if something is mounted within.
func Remove(dir string) error {
	if at := mountWithin(dir); at != "" {
		return fmt.Errorf("%q is a mount point, and is left with the folder that it is in", at)
	}
	first := os.RemoveAll(dir)
	if first == nil || !errors.Is(first, fs.ErrPermission) {
		return first
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return first
	}
	defer root.Close()
	_ = root.Chmod(".", 0o700)
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

//go:build unix

package tenure

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwner reports why a folder may hold what others put there.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%q must be a folder of this user's that nobody else may write to", dir)
	}
	return nil
}

func openLocked(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.Close()
		return nil, errTaken
	}
	return f, nil
}

func removeLocked(f *os.File) error { return os.Remove(f.Name()) }

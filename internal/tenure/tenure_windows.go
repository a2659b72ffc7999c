package tenure

import (
	"os"
	"syscall"
)

// checkOwner reports nothing: a user's temporary files are the user's alone.
func checkOwner(dir string) error {
	_, err := os.Lstat(dir)
	return err
}

// openLocked opens a file that nobody else can open meanwhile.
func openLocked(path string, flag int) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	create := uint32(syscall.OPEN_EXISTING)
	if flag&os.O_CREATE != 0 {
		create = syscall.OPEN_ALWAYS
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, create, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, errTaken
	}
	return os.NewFile(uintptr(h), path), nil
}

// removeLocked closes the file first, as nobody can remove one that is open so.
func removeLocked(f *os.File) error {
	f.Close()
	return os.Remove(f.Name())
}

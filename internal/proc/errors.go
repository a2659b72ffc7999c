package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// PrepareError says that Config.Prepare failed.
type PrepareError struct{ Err error }

func (e *PrepareError) Error() string { return "prepare the command: " + e.Err.Error() }
func (e *PrepareError) Unwrap() error { return e.Err }

// LeftError says that a tree could not be ended, or not for sure, and what is left of
// it is left to itself. On unix a program that is left is still reaped when it ends.
type LeftError struct {
	Pids []int // processes that are left; none if it isn't known whether there are any
	// Err is why they can't be ended, such as syscall.EPERM, or why it isn't known;
	// nil if they were killed and aren't gone.
	Err error
}

func (e *LeftError) Error() string {
	var text string
	switch pids := strings.Trim(fmt.Sprint(e.Pids), "[]"); len(e.Pids) {
	case 0:
		text = "processes of the server may be left"
	case 1:
		text = "process " + pids + " of the server could not be ended"
	default:
		text = "processes " + pids + " of the server could not be ended"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *LeftError) Unwrap() error { return e.Err }

// errUnseen says that the host lacked the time or the file descriptors for a look at
// all of its processes.
var errUnseen = errors.New("not all of the host's processes could be looked at")

// DirError says that a program's working directory can't be entered.
type DirError struct {
	Dir string
	Err error // why, as os.Stat says it
}

func (e *DirError) Error() string { return fmt.Sprintf("working directory %q: %v", e.Dir, e.Err) }
func (e *DirError) Unwrap() error { return e.Err }

// LookError says that no program of that name can be run.
type LookError struct {
	File   string // the name asked for
	Path   string // the PATH it was looked for on; "" if the name held a separator
	OnPath bool   // it was looked for on Path
	Err    error  // exec.ErrNotFound, or what denies running the only file found
}

func (e *LookError) Error() string {
	reason := e.Err.Error()
	if errors.Is(e.Err, exec.ErrNotFound) {
		reason = "no such executable"
	}
	switch {
	case !e.OnPath:
		return fmt.Sprintf("command %q: %s", e.File, reason)
	case e.Path == "":
		return fmt.Sprintf("command %q: %s, as the server's environment has no PATH", e.File, reason)
	}
	return fmt.Sprintf("command %q: %s on the PATH %q", e.File, reason, e.Path)
}

func (e *LookError) Unwrap() error { return e.Err }

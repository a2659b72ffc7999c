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

// LookError says that no program of that name can be run. It holds of the command only
// the program's base name: whoever writes a whole command line in its place may have
// put a secret there.
type LookError struct {
	Name   string // as BaseName has it
	Blanks bool   // the command holds some
	Path   string // the PATH it was looked for on; "" if the command held a separator
	OnPath bool   // it was looked for on Path
	Err    error  // exec.ErrNotFound, or what denies running the only file found
}

func (e *LookError) Error() string {
	reason := e.Err.Error()
	if errors.Is(e.Err, exec.ErrNotFound) {
		reason = "no such executable"
	}
	text := fmt.Sprintf("command %q: %s", e.Name, reason)
	switch {
	case e.Blanks:
		return fmt.Sprintf("command %q...: %s; it holds blanks, and arguments go in Args", e.Name, reason)
	case !e.OnPath:
		return text
	case e.Path == "":
		return text + ", as the server's environment has no PATH"
	}
	return fmt.Sprintf("%s on the PATH %q", text, e.Path)
}

func (e *LookError) Unwrap() error { return e.Err }

// BaseName returns the name of the program in a command, without its directory and
// without what follows a blank, which may be arguments: nothing that a secret is in.
func BaseName(command string) string {
	name := strings.TrimLeft(command, blanks)
	if i := strings.IndexAny(name, blanks); i >= 0 {
		name = name[:i]
	}
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

const blanks = " \t\r\n"

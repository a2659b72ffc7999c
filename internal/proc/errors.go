package proc

import (
	"errors"
	"fmt"
	"os/exec"
)

// DirError tells that a program's working directory can't be entered.
type DirError struct {
	Dir string
	Err error // why, as os.Stat says it
}

func (e *DirError) Error() string { return fmt.Sprintf("working directory %q: %v", e.Dir, e.Err) }
func (e *DirError) Unwrap() error { return e.Err }

// LookError tells that no program of that name can be run.
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

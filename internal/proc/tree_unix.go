//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// tree is a session, its leader, and what left the session.
//
// Until the leader is reaped it pins its pid, which is the id of its session and of
// its group too: none can be given to another process, so all can be signalled.
type tree struct {
	pid int
	osTree

	mu     sync.Mutex // protects the fields below
	reaped bool       // pid may be anybody's
}

func startTree(cmd *exec.Cmd, files [3]*os.File) (*tree, error) {
	t := &tree{}
	attr := &syscall.ProcAttr{Dir: cmd.Dir, Env: cmd.Env, Sys: cmd.SysProcAttr}
	attr.Sys.Setsid = true
	attr.Sys.Setpgid, attr.Sys.Setctty, attr.Sys.Noctty, attr.Sys.Foreground = false, false, false, false
	for _, f := range append(files[:], cmd.ExtraFiles...) {
		attr.Files = append(attr.Files, f.Fd())
	}
	defaults.begin()
	err := t.fork(cmd.Path, cmd.Args, attr)
	defaults.end()
	runtime.KeepAlive(cmd.ExtraFiles)
	if err != nil {
		return nil, explain(cmd, err)
	}
	return t, nil
}

// explain says which of the files that a start involves an error is about:
// the kernel's error is the same for all of them.
func explain(cmd *exec.Cmd, err error) error {
	if cmd.Dir != "" {
		info, statErr := os.Stat(cmd.Dir)
		var pathErr *fs.PathError
		switch {
		case errors.As(statErr, &pathErr):
			return &DirError{Dir: cmd.Dir, Err: pathErr.Err}
		case !info.IsDir():
			return &DirError{Dir: cmd.Dir, Err: syscall.ENOTDIR}
		case syscall.Access(cmd.Dir, 1) != nil: // X_OK
			return &DirError{Dir: cmd.Dir, Err: syscall.EACCES}
		}
	}
	if errors.Is(err, syscall.ENOENT) {
		if _, statErr := os.Stat(cmd.Path); statErr == nil {
			err = missingInterpreterError{err}
		}
	}
	return &fs.PathError{Op: "start", Path: filepath.Base(cmd.Path), Err: err}
}

type missingInterpreterError struct{ error }

func (e missingInterpreterError) Error() string {
	return e.error.Error() + " (the file is there: its interpreter or loader isn't)"
}

func (e missingInterpreterError) Unwrap() error { return e.error }

// terminate asks the tree to end. It always can.
func (t *tree) terminate() bool {
	t.remember()
	t.signal(syscall.SIGTERM)
	t.signal(syscall.SIGCONT) // a stopped process would not get to handle it
	return true
}

// kill ends the group, and returns why the leader can't be killed.
func (t *tree) kill() error {
	t.signal(syscall.SIGKILL)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return nil
	}
	// The group's signal succeeds if it reached anyone.
	return syscall.Kill(t.pid, syscall.SIGKILL)
}

// signal signals the group, whose only member may by now be the zombie of its
// leader. The leader is always a member: no group but its own takes the leader of a
// session.
func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		_ = syscall.Kill(-t.pid, sig)
	}
}

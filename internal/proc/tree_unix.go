//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// tree is a process group, its leader, and what left the group.
//
// Until the leader is reaped it pins its pid, which is the group's id too:
// neither can be given to another process, so both can be signalled.
type tree struct {
	pid int
	osTree

	mu     sync.Mutex // protects the fields below
	reaped bool       // pid may be anybody's
}

func startTree(cfg Config, files [3]*os.File) (*tree, error) {
	t := &tree{}
	attr := &syscall.ProcAttr{
		Dir: cfg.Dir,
		Env: append([]string{}, cfg.Env...),
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if err := t.fork(cfg.Path, append([]string{cfg.Path}, cfg.Args...), attr); err != nil {
		return nil, explain(cfg, err)
	}
	return t, nil
}

// explain says which of the files that a start involves an error is about:
// the kernel's error is the same for all of them.
func explain(cfg Config, err error) error {
	if cfg.Dir != "" {
		info, statErr := os.Stat(cfg.Dir)
		var pathErr *fs.PathError
		switch {
		case errors.As(statErr, &pathErr):
			return &DirError{Dir: cfg.Dir, Err: pathErr.Err}
		case !info.IsDir():
			return &DirError{Dir: cfg.Dir, Err: syscall.ENOTDIR}
		case syscall.Access(cfg.Dir, 1) != nil: // X_OK
			return &DirError{Dir: cfg.Dir, Err: syscall.EACCES}
		}
	}
	if errors.Is(err, syscall.ENOENT) {
		if _, statErr := os.Stat(cfg.Path); statErr == nil {
			err = missingInterpreterError{err}
		}
	}
	return &fs.PathError{Op: "start", Path: cfg.Path, Err: err}
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

// kill ends the group.
func (t *tree) kill() { t.signal(syscall.SIGKILL) }

// signal signals the group, whose only member may by now be the zombie of its
// leader.
func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return
	}
	err := syscall.Kill(-t.pid, sig)
	if err == syscall.ESRCH {
		// The leader joined another group and nobody is left in its own.
		_ = syscall.Kill(t.pid, sig)
	}
}

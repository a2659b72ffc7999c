//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proc

import (
	"os"
	"syscall"
)

// osTree is what a BSD or macOS knows of a tree. The wait for its end takes a
// thread, and what left the group isn't found.
type osTree struct {
	kqueue int // reports the leader's exit before it is reaped
	gone   bool
}

func (t *tree) fork(path string, argv []string, attr *syscall.ProcAttr) error {
	kqueue, err := syscall.Kqueue()
	if err != nil {
		return os.NewSyscallError("kqueue", err)
	}
	syscall.CloseOnExec(kqueue)
	t.pid, _, err = syscall.StartProcess(path, argv, attr)
	if err != nil {
		syscall.Close(kqueue)
		return err
	}
	t.kqueue = kqueue
	var event syscall.Kevent_t
	syscall.SetKevent(&event, t.pid, syscall.EVFILT_PROC, syscall.EV_ADD|syscall.EV_ONESHOT)
	event.Fflags = syscall.NOTE_EXIT
	switch _, err = syscall.Kevent(kqueue, []syscall.Kevent_t{event}, nil, nil); err {
	case nil:
	case syscall.ESRCH:
		t.gone = true // has exited already
	default:
		_ = t.kill()
		t.awaitReap()
		syscall.Close(kqueue)
		return os.NewSyscallError("kevent", err)
	}
	return nil
}

// awaitExit waits for the leader's exit, kills what it left of its group while
// its zombie pins the group's id, and reaps it: how it ended can't be learnt
// otherwise. So unlike elsewhere what is left gets no time for its last words; what
// it had written by then is in the pipes and is read.
func (t *tree) awaitExit() Exit {
	for !t.gone {
		var event [1]syscall.Kevent_t
		_, err := syscall.Kevent(t.kqueue, nil, event[:], nil)
		t.gone = err != syscall.EINTR
	}
	_ = t.kill()
	return t.awaitReap()
}

func (t *tree) awaitReap() Exit {
	t.mu.Lock()
	t.reaped = true // from here on nobody signals the pid
	t.mu.Unlock()
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(t.pid, &status, 0, nil); err {
		case nil:
			return exitOf(status)
		case syscall.EINTR:
		default:
			return Exit{Code: -1} // the host ignores SIGCHLD or waits for any child
		}
	}
}

func (t *tree) look()     {}
func (t *tree) remember() {}

// hangs reports that a program that was killed won't end by time alone. Here nothing
// shows that it will.
func (t *tree) hangs() bool { return true }

func (t *tree) finish() error {
	syscall.Close(t.kqueue)
	return nil
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal().String(), CoreDump: status.CoreDump()}
	}
	return Exit{Code: status.ExitStatus()}
}

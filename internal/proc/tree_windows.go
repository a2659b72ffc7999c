package proc

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// killTime bounds the wait for killed processes to be gone.
const killTime = time.Second

var (
	procGetConsoleCP             = kernel32.NewProc("GetConsoleCP")
	procGenerateConsoleCtrlEvent = kernel32.NewProc("GenerateConsoleCtrlEvent")
	procNtResumeProcess          = ntdll.NewProc("NtResumeProcess")
)

const (
	createSuspended = 0x4
	createNoWindow  = 0x08000000
)

// tree is a job object, and the program that was its first member. The wait
// for its end takes a thread.
type tree struct {
	pid     int
	process syscall.Handle
	job     job
	console bool // it shares the host's console

	mu     sync.Mutex // protects the fields below
	closed bool       // process and job are
}

func startTree(cmd *exec.Cmd, files [3]*os.File) (*tree, error) {
	attr := &syscall.ProcAttr{Dir: cmd.Dir, Env: environment(cmd.Env), Sys: cmd.SysProcAttr}
	// Suspended, so that it can start nothing before it is in the job.
	attr.Sys.CreationFlags |= createSuspended | syscall.CREATE_NEW_PROCESS_GROUP
	attr.Sys.NoInheritHandles = false
	for _, f := range append(files[:], cmd.ExtraFiles...) {
		attr.Files = append(attr.Files, f.Fd())
	}
	t := &tree{console: hasConsole()}
	if !t.console {
		attr.Sys.CreationFlags |= createNoWindow
	}
	path, argv := cmd.Path, cmd.Args
	if isBatch(path) {
		shell, err := shellPath()
		if err != nil {
			return nil, err
		}
		if attr.Sys.CmdLine, err = batchCmdLine(shell, path, argv[1:]); err != nil {
			return nil, err
		}
		path, argv = shell, []string{shell}
	}
	var err error
	if t.job, err = newJob(); err != nil {
		return nil, err
	}
	pid, handle, err := syscall.StartProcess(path, argv, attr)
	if err != nil {
		t.job.close()
		return nil, explain(cmd, err)
	}
	t.pid, t.process = pid, syscall.Handle(handle)
	if err := t.job.assign(t.process); err != nil {
		syscall.TerminateProcess(t.process, 1)
		t.closeHandles()
		return nil, err
	}
	// The documented ResumeThread needs the handle of the first thread, which
	// syscall.StartProcess doesn't give away.
	if status, _, _ := procNtResumeProcess.Call(handle); int32(status) < 0 {
		_ = t.job.terminate()
		t.closeHandles()
		return nil, os.NewSyscallError("NtResumeProcess", syscall.Errno(status))
	}
	return t, nil
}

// explain says which of the files that a start involves an error is about.
func explain(cmd *exec.Cmd, err error) error {
	if cmd.Dir != "" {
		info, statErr := os.Stat(cmd.Dir)
		if statErr != nil {
			return &DirError{Dir: cmd.Dir, Err: statErr.(*fs.PathError).Err}
		}
		if !info.IsDir() {
			return &DirError{Dir: cmd.Dir, Err: syscall.ENOTDIR}
		}
	}
	return &fs.PathError{Op: "start", Path: filepath.Base(cmd.Path), Err: err}
}

func hasConsole() bool {
	codePage, _, _ := procGetConsoleCP.Call()
	return codePage != 0
}

// awaitExit waits for the program's exit.
func (t *tree) awaitExit() Exit {
	if _, err := syscall.WaitForSingleObject(t.process, syscall.INFINITE); err != nil {
		return Exit{Code: -1}
	}
	var code uint32
	if err := syscall.GetExitCodeProcess(t.process, &code); err != nil {
		return Exit{Code: -1}
	}
	return Exit{Code: int(code)}
}

// terminate asks the tree to end, and reports whether there is a console to ask
// it through.
func (t *tree) terminate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || !t.console {
		return false
	}
	sent, _, _ := procGenerateConsoleCtrlEvent.Call(syscall.CTRL_BREAK_EVENT, uintptr(t.pid))
	return sent != 0
}

// kill ends the tree, and returns why it can't.
func (t *tree) kill() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	return t.job.terminate()
}

// look is for systems where the members of a tree must be looked for.
func (t *tree) look() {}

// hangs reports that a program that was killed won't end by time alone. Here nothing
// shows that it will.
func (t *tree) hangs() bool { return true }

// finish ends what the program left behind.
func (t *tree) finish() error {
	killErr := t.kill()
	deadline := time.Now().Add(killTime)
	active := t.job.active()
	for pause := time.Millisecond; active > 0 && time.Now().Before(deadline); pause *= 2 {
		time.Sleep(min(pause, 50*time.Millisecond))
		active = t.job.active()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.closeHandles()
	if active > 0 {
		return &LeftError{Err: killErr}
	}
	return nil
}

func (t *tree) closeHandles() {
	syscall.CloseHandle(t.process)
	t.job.close()
}

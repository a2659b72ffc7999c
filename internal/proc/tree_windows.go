package proc

import (
	"io/fs"
	"os"
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

func startTree(cfg Config, files [3]*os.File) (*tree, error) {
	attr := &syscall.ProcAttr{
		Dir: cfg.Dir,
		Env: environment(cfg.Env),
		// Suspended, so that it can start nothing before it is in the job.
		Sys: &syscall.SysProcAttr{CreationFlags: createSuspended | syscall.CREATE_NEW_PROCESS_GROUP},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	t := &tree{console: hasConsole()}
	if !t.console {
		attr.Sys.CreationFlags |= createNoWindow
	}
	path := cfg.Path
	if isBatch(path) {
		shell, err := shellPath()
		if err != nil {
			return nil, err
		}
		if attr.Sys.CmdLine, err = batchCmdLine(shell, path, cfg.Args); err != nil {
			return nil, err
		}
		path = shell
	}
	var err error
	if t.job, err = newJob(); err != nil {
		return nil, err
	}
	pid, handle, err := syscall.StartProcess(path, append([]string{path}, cfg.Args...), attr)
	if err != nil {
		t.job.close()
		return nil, explain(cfg, err)
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
		t.job.terminate()
		t.closeHandles()
		return nil, os.NewSyscallError("NtResumeProcess", syscall.Errno(status))
	}
	return t, nil
}

// explain says which of the files that a start involves an error is about.
func explain(cfg Config, err error) error {
	if cfg.Dir != "" {
		info, statErr := os.Stat(cfg.Dir)
		if statErr != nil {
			return &DirError{Dir: cfg.Dir, Err: statErr.(*fs.PathError).Err}
		}
		if !info.IsDir() {
			return &DirError{Dir: cfg.Dir, Err: syscall.ENOTDIR}
		}
	}
	return &fs.PathError{Op: "start", Path: cfg.Path, Err: err}
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

// kill ends the tree.
func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.job.terminate()
	}
}

// look is for systems where the members of a tree must be looked for.
func (t *tree) look() {}

// finish ends what the program left behind.
func (t *tree) finish() {
	t.kill()
	deadline := time.Now().Add(killTime)
	for pause := time.Millisecond; t.job.active() > 0 && time.Now().Before(deadline); pause *= 2 {
		time.Sleep(min(pause, 50*time.Millisecond))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.closeHandles()
}

func (t *tree) closeHandles() {
	syscall.CloseHandle(t.process)
	t.job.close()
}

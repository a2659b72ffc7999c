// Package proc runs one child process tree: a program that was started with
// pipes on its stdin, stdout and stderr, and everything it started in turn.
//
// A [Process] ends as a whole. However it comes to its end, by itself, by
// [Process.Stop] or by [Process.Kill], Done is closed only once the program
// is reaped and what it left running has been killed.
//
// # What belongs to the tree
//
// On unix the program leads a process group of its own, which is signalled as
// one. On Linux descendants that left the group (setsid, daemons) are found as
// well, as a best effort: by a marker in their environment, see [TreeEnv], or
// by their parents while these still live. A descendant that cleared its
// environment and whose parents were gone before anybody looked escapes. On
// Windows the tree is a job object, which nothing leaves.
//
// # What survives a host that is killed
//
// When the host itself is killed no code of this package runs any more. What
// is left to the kernel:
//
//   - Windows: the job is closed with its last handle, and kills the whole tree.
//   - Linux: the program is killed by its parent-death signal, unless it is
//     setuid, setgid or has file capabilities, or asked the kernel to forget
//     the signal. The programs it started see EOF or EPIPE on the pipes they
//     share with it, and nothing else: those that ignore it survive.
//   - Elsewhere: EOF on stdin is all that the program is told.
package proc

import (
	"os"
	"sync"
	"time"
)

// drainTime bounds how long the end of a tree waits for its reader: after the
// program's exit for what its own children still write, and once they are
// killed for what is left in the pipes. A variable for the tests alone.
var drainTime = 100 * time.Millisecond

// Config says what to start.
type Config struct {
	Path string   // the executable, already looked up, see LookPath
	Args []string // without argv[0], which is Path

	// Env is the whole environment, "key=value" each: nil means empty, never
	// the host's. Linux adds TreeEnv; Windows adds the host's SYSTEMROOT when
	// there is none, as nothing starts without.
	Env []string

	Dir string // the working directory, "" for the host's

	// OnExit, if it isn't nil, is called once, right after Exited is closed, on
	// the goroutine that sees to the end of the tree: it must not block. It may
	// run before Start returns, and never does when Start fails.
	OnExit func()
}

// Process is one child process tree. Its methods may be called from any
// goroutine.
//
// An idle Process has one goroutine and no thread (Linux), three pipes and a
// pidfd.
type Process struct {
	// The host's ends of the three pipes. Deadlines work on them, and Close
	// interrupts a Read or Write under way. On Windows more of a write that was
	// cut short may have gone out than its count says: nothing may follow it.
	//
	// Stdin is closed by Stop and by the program's exit. Stdout and Stderr are
	// the reader's, who reads them to their end and then calls Drained; they
	// are closed right before Done is.
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File

	tree    *tree
	onExit  func()
	exited  chan struct{}
	drained chan struct{}
	done    chan struct{}

	drainOnce sync.Once
	termOnce  sync.Once
	termSent  bool // set by termOnce

	mu        sync.Mutex // protects the fields below
	requested bool       // Stop or Kill was called
	hasExited bool       // exit is set
	exit      Exit
}

// Start starts cfg.Path and returns once it runs, so without waiting for
// anything the program does.
//
// A Dir that isn't there or may not be entered is a *[DirError]. Any other
// error is that of the operating system, as a *fs.PathError or
// *os.SyscallError. After an error nothing is left of the attempt.
func Start(cfg Config) (*Process, error) {
	var ends pipes
	if err := ends.open(); err != nil {
		return nil, err
	}
	tree, err := startTree(cfg, ends.child)
	ends.closeChild()
	if err != nil {
		ends.closeHost()
		return nil, err
	}
	return watched(cfg, tree, ends), nil
}

// watched returns the Process of a tree that runs.
func watched(cfg Config, tree *tree, ends pipes) *Process {
	p := &Process{
		Stdin:   ends.host[0],
		Stdout:  ends.host[1],
		Stderr:  ends.host[2],
		tree:    tree,
		onExit:  cfg.OnExit,
		exited:  make(chan struct{}),
		drained: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go p.watch()
	return p
}

// watch sees the tree to its end.
func (p *Process) watch() {
	exit := p.tree.awaitExit()
	p.mu.Lock()
	exit.Requested = p.requested
	p.exit, p.hasExited = exit, true
	p.mu.Unlock()
	close(p.exited)
	if p.onExit != nil {
		p.onExit()
	}

	p.Stdin.Close()
	p.awaitDrained()
	p.tree.finish()
	// A pipe that a child of the program held open reaches its end only now.
	p.awaitDrained()
	p.Stdout.Close()
	p.Stderr.Close()
	close(p.done)
}

func (p *Process) awaitDrained() {
	select {
	case <-p.drained:
	case <-time.After(drainTime):
	}
}

// Pid returns the process id of the program. It is the program's until Done
// is closed and may be anybody's afterwards.
func (p *Process) Pid() int { return p.tree.pid }

// Exited returns a channel that is closed within milliseconds of the
// program's exit, whatever became of its children.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Drained tells that the reader is done with Stdout and Stderr: it has seen
// the end of both, or wants no more. Until then, and for at most 100 ms after
// the exit and 100 ms more after the kill of what was left, the tree's end
// waits for the reader. Idempotent.
func (p *Process) Drained() { p.drainOnce.Do(func() { close(p.drained) }) }

// Done returns a channel that is closed once the whole tree is gone, the
// program is reaped, the pipes are closed and no goroutine of p is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the program ended. It is valid once Exited is closed, and
// the zero Exit before.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Stop ends the tree as the MCP specification has clients end a stdio server,
// and returns once Done is closed. It closes Stdin; half the timeout later, or
// after 2 s if that is less, it sends SIGTERM to the group (Windows:
// CTRL_BREAK); and a tenth of the timeout before its end, or a second if that
// is less, or at once where there is no console to send CTRL_BREAK through, it
// kills the tree. A server that exits in time gets no signal.
//
// The timeout is when the kill has long been sent, not a bound on what the
// kernel takes to carry it out. Zero or less kills at once.
//
// Stop may be called any number of times and concurrently: all callers wait
// for Done, and the shortest of their timeouts is what counts.
func (p *Process) Stop(timeout time.Duration) {
	p.request()
	p.tree.look()
	p.Stdin.Close()
	eof, term := stopPhases(timeout)
	if !p.exitsWithin(eof) {
		asked := term > 0 && p.terminate()
		if !asked || !p.exitsWithin(term) {
			p.tree.kill()
		}
	}
	<-p.done
}

// stopPhases splits the time that Stop has: what a server gets after EOF, and
// after SIGTERM. What remains is the reserve in which a killed tree is reaped.
func stopPhases(timeout time.Duration) (eof, term time.Duration) {
	if timeout <= 0 {
		return 0, 0
	}
	eof = min(timeout/2, 2*time.Second)
	reserve := min(timeout/10, time.Second)
	return eof, timeout - eof - reserve
}

// terminate asks the tree to end, once, and reports whether it could be asked.
// To some servers a second SIGTERM means to give up their clean-up.
func (p *Process) terminate() bool {
	p.termOnce.Do(func() { p.termSent = p.tree.terminate() })
	return p.termSent
}

func (p *Process) exitsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// Kill kills the whole tree now and doesn't wait: Done tells when it is gone.
func (p *Process) Kill() {
	p.request()
	p.tree.kill()
}

func (p *Process) request() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasExited {
		p.requested = true
	}
}

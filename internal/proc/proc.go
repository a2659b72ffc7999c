// Package proc runs one child process tree: a program that was started with
// pipes on its stdin, stdout and stderr, and everything it started in turn.
//
// A [Process] ends as a whole. However it comes to its end, by itself, by
// [Process.Stop] or by [Process.Kill], Done is closed only once the program
// is reaped and what it left running has been killed, or once Stop has given up
// what can't be ended, see [LeftError].
//
// # What belongs to the tree
//
// On unix the program leads a session and a process group of its own, and the
// group is signalled as one. It has no controlling terminal: opening /dev/tty
// fails at once, and no key pressed at the host's terminal reaches it.
//
// On Linux descendants that left the group (daemons, the jobs of an interactive
// shell) are found as well, as a best effort: by their session, by a marker in
// their environment, see [TreeEnv], or by their parents while these still live.
// Two kinds escape: one that left the session, cleared its environment and lost
// its parents before anybody looked; and one that left the group and lost its
// parents below a program that set SA_NOCLDWAIT, which shows nobody that it ever
// had a child. On Windows the tree is a job object, which nothing leaves.
//
// On Windows the program shares the host's console, if it has one: CTRL_BREAK
// goes through it. Without one the program gets none, and no window.
//
// # Signals
//
// Programs on unix start with the default action for the signals that end a
// program, also where the host ignores them. SIGCHLD and those of job control
// stay as the host has them, and so do signals that are blocked.
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
	"os/exec"
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

	// Grace is what Stop waits after its first step, the end of the input, before
	// it takes the second, SIGTERM. Zero means half of Stop's timeout; all that
	// Stop has before it kills is the most.
	Grace time.Duration

	// TermFirst, if it isn't nil, is asked by Stop whether to begin with SIGTERM
	// (Windows: CTRL_BREAK) and end the input as the second step. It is for programs that save their state when
	// they are terminated and not when their input ends.
	TermFirst func() bool

	// OnExit, if it isn't nil, is called once, right after Exited is closed, on
	// the goroutine that sees to the end of the tree: it must not block. It may
	// run before Start returns, and never does when Start fails.
	OnExit func()

	// Prepare, if it isn't nil, is called before the start and may change how
	// the program is started: Path, Args, Env, Dir, ExtraFiles and SysProcAttr
	// of the command count, nothing else does. An Env that it sets to nil is
	// empty. What this package needs is set afterwards and wins: the standard
	// streams, TreeEnv, the session (so that Setpgid, Setctty, Noctty and
	// Foreground are off), on Linux Pdeathsig and PidFD, on Windows the
	// creation flags that put the program into its job, and the command line of
	// a batch file. Start returns its error as a *[PrepareError].
	Prepare func(*exec.Cmd) error
}

// Process is one child process tree. Its methods may be called from any
// goroutine.
//
// An idle Process has one goroutine and no thread (Linux), three pipes and a
// pidfd. One that was given up keeps the goroutine and the pidfd, and on other
// systems the thread, until the program does end; then it is reaped.
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
	cfg     Config
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
	ended     bool  // the pipes and Done are closed
	left      error // a *LeftError; set with ended
}

// Start starts cfg.Path and returns once it runs, so without waiting for
// anything the program does.
//
// A Dir that isn't there or may not be entered is a *[DirError], an error of
// Prepare a *[PrepareError]. Any other error is that of the operating system, as a *fs.PathError or
// *os.SyscallError. After an error nothing is left of the attempt.
func Start(cfg Config) (*Process, error) {
	cmd, err := cfg.command()
	if err != nil {
		return nil, err
	}
	var ends pipes
	if err := ends.open(); err != nil {
		return nil, err
	}
	tree, err := startTree(cmd, ends.child)
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
		cfg:     cfg,
		exited:  make(chan struct{}),
		drained: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go p.watch()
	return p
}

// watch sees the tree to its end, which may come long after it was given up.
func (p *Process) watch() {
	exit := p.tree.awaitExit()
	p.mu.Lock()
	exit.Requested = p.requested
	p.exit, p.hasExited = exit, true
	p.mu.Unlock()
	close(p.exited)
	if p.cfg.OnExit != nil {
		p.cfg.OnExit()
	}

	p.Stdin.Close()
	p.awaitDrained()
	left := p.tree.finish()
	// A pipe that a child of the program held open reaches its end only now.
	p.awaitDrained()
	p.end(left)
}

// end closes what is the caller's to use. The first call counts.
func (p *Process) end(left error) {
	p.mu.Lock()
	first := !p.ended
	if first {
		p.ended, p.left = true, left
	}
	p.mu.Unlock()
	if first {
		closeFiles([]*os.File{p.Stdin, p.Stdout, p.Stderr})
		close(p.done)
	}
}

// RSS is [RSSOf] of one tree; ok is false if it isn't known.
func (p *Process) RSS() (rss int64, ok bool) {
	rss = RSSOf(p)[0]
	return rss, rss > 0
}

func (p *Process) awaitDrained() {
	select {
	case <-p.drained:
	case <-time.After(drainTime):
	}
}

// Pid returns the process id of the program. It is the program's until Done
// is closed and may be anybody's afterwards, unless the program was given up.
func (p *Process) Pid() int { return p.tree.pid }

// Exited returns a channel that is closed within milliseconds of the
// program's exit, whatever became of its children.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Drained says that the reader is done with Stdout and Stderr: it has seen
// the end of both, or wants no more. Until then, and for at most 100 ms after
// the exit and 100 ms more after the kill of what was left, the tree's end
// waits for the reader. Idempotent.
func (p *Process) Drained() { p.drainOnce.Do(func() { close(p.drained) }) }

// Done returns a channel that is closed once the whole tree is gone, the
// program is reaped, the pipes are closed and no goroutine of p is left; or,
// with the pipes closed, once it is known that something of it is left, see Err.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns a *[LeftError] if something of the tree was left when Done was
// closed, and nil otherwise and before.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Exit returns how the program ended. It is valid once Exited is closed, and
// the zero Exit before.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

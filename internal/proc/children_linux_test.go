package proc_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/mcppool/mcppool/internal/proc"
)

func init() {
	// A host whose child is started on a thread that ends right after. Prints
	// whether the child survives that.
	modes["host-thread-ends"] = func([]string) {
		runtime.LockOSThread() // keeps the first thread, which never ends, from the others
		started := make(chan *proc.Process)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			started <- hostStart(os.Args[0], "echo")
		}()
		p := <-started
		// End the runtime's spare threads as well, one of which may be the one
		// that forked.
		for range 100 {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				runtime.LockOSThread()
			}()
			<-ended
		}
		select {
		case <-p.Exited():
			fmt.Println("died:", p.Exit())
		case <-time.After(300 * time.Millisecond):
			p.Stop(bound)
			fmt.Println("stopped:", p.Exit())
		}
	}
}

func init() {
	// A host that inherits orphans, as the first process of a container does.
	// Prints the number of zombies left after a Stop.
	modes["host-subreaper"] = func(args []string) {
		const prSetChildSubreaper = 36
		_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
		if errno != 0 {
			must(errno)
		}
		p := hostStart(os.Args[0], "wrapper", args...)
		readPid(p)
		p.Drained()
		p.Stop(bound)
		fmt.Println("children left:", len(childrenOf(os.Getpid())))
	}

	// A host that has the kernel reap its children.
	modes["host-ignores-sigchld"] = func([]string) {
		signal.Ignore(syscall.SIGCHLD)
		p := hostStart(os.Args[0], "wrapper")
		grandchild := readPid(p)
		p.Drained()
		p.Stop(bound)
		fmt.Println("alive:", alive(grandchild), p.Exit())
	}

	// Starts a daemon through a child that ends, which no accounting of the
	// kernel shows. Prints the daemon's pid.
	modes["daemon-unseen"] = func([]string) {
		signal.Ignore(syscall.SIGCHLD)
		launch("detached", "devnull")
	}

	// The same with a worker in its own group, by an option that nobody can see.
	modes["worker-unseen"] = func([]string) {
		reapByKernel()
		launch("devnull")
	}

	// Has itself stopped once it is ready.
	modes["stopped"] = func([]string) {
		ready()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		forever()
	}
}

// reapByKernel has the kernel reap the children of the program, which goes on to handle
// SIGCHLD.
func reapByKernel() {
	const saNoCldWait = 2
	type kernelAction struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	var action kernelAction
	sigaction := func(set, get *kernelAction) {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD),
			uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 8, 0, 0)
		if errno != 0 {
			must(errno)
		}
	}
	sigaction(nil, &action)
	action.flags |= saNoCldWait
	sigaction(&action, nil)
}

// launch starts a wrapper and waits for its end and that of the input.
func launch(options ...string) {
	null, err := os.Open(os.DevNull)
	must(err)
	must(os.Setenv(modeEnv, "wrapper"))
	// Not by os/exec, which first tries out the kernel with a child of its own.
	launcher, err := syscall.ForkExec(os.Args[0], append([]string{os.Args[0]}, options...), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), 1, 2},
	})
	must(err)
	for alive(launcher) {
		time.Sleep(time.Millisecond)
	}
	ready()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// asNobody has a command run as a user who may do little.
func asNobody(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return nil
}

func readPid(p *proc.Process) int {
	var pid int
	_, err := fmt.Fscanln(p.Stdout, &pid)
	must(err)
	return pid
}

package proc_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcppool/mcppool/internal/proc"
)

func init() {
	// Starts a grandchild that ignores everything, prints its pid, and ends at
	// EOF. Options: setsid (it leaves the group), noenv (it loses its
	// environment), devnull (it holds none of the pipes), stay (the wrapper
	// ignores EOF).
	modes["wrapper"] = func(args []string) {
		cmd := exec.Command(os.Args[0], "ignore-all")
		cmd.Env = append(os.Environ(), modeEnv+"=ignore-all")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: slices.Contains(args, "setsid")}
		if !slices.Contains(args, "devnull") {
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		}
		if slices.Contains(args, "noenv") {
			cmd.Env = []string{modeEnv + "=ignore-all"}
		}
		must(cmd.Start())
		fmt.Println(cmd.Process.Pid)
		if slices.Contains(args, "stay") {
			select {}
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}

	// A host with one child that ignores everything. Prints the child's pid.
	modes["host"] = func([]string) {
		p := hostStart(os.Args[0], "ignore-all")
		fmt.Println(p.Pid())
		select {}
	}

	// A host whose child is started on a thread that ends right after. Prints
	// whether the child survives that.
	modes["host-thread-ends"] = func([]string) {
		started := make(chan *proc.Process)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			started <- hostStart(os.Args[0], "echo")
		}()
		p := <-started
		select {
		case <-p.Exited():
			fmt.Println("died:", p.Exit())
		case <-time.After(300 * time.Millisecond):
			p.Stop(bound)
			fmt.Println("stopped:", p.Exit())
		}
	}

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

	// Has itself stopped once it is ready.
	modes["stopped"] = func([]string) {
		ready()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	}
}

func hostStart(self, mode string, args ...string) *proc.Process {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, modeEnv+"=") })
	p, err := proc.Start(proc.Config{Path: self, Args: args, Env: append(env, modeEnv+"="+mode)})
	must(err)
	return p
}

func readPid(p *proc.Process) int {
	var pid int
	_, err := fmt.Fscanln(p.Stdout, &pid)
	must(err)
	return pid
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

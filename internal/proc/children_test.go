package proc_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcppool/mcppool/internal/proc"
)

// modes are the children that the test binary can play, by name. A mode that
// returns exits with 0.
var modes = map[string]func(args []string){
	// A well-behaved server: echoes stdin, ends at EOF.
	"echo": func([]string) {
		_, _ = io.Copy(os.Stdout, os.Stdin)
	},
	"exit": func(args []string) {
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	},
	// Ends on SIGTERM only, and says so.
	"ignore-eof": func([]string) {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM, os.Interrupt)
		ready()
		<-term
		os.Exit(7)
	},
	"ignore-all": func(args []string) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
		if !slices.Contains(args, "quiet") {
			ready()
		}
		forever()
	},
	// Takes its time after EOF. A SIGTERM makes it exit with 9.
	"slow-exit": func(args []string) {
		d, _ := time.ParseDuration(args[0])
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM, os.Interrupt)
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {
		case <-time.After(d):
		case <-term:
			os.Exit(9)
		}
	},
	// Saves its state on SIGTERM, and not at EOF, which makes it exit with 1.
	"saves-on-sigterm": func([]string) {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		go func() {
			<-term
			os.Exit(0)
		}()
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	},
	// Ends at EOF, with 0 if a SIGTERM came before.
	"sigterm-then-eof": func([]string) {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {
		case <-term:
		default:
			os.Exit(1)
		}
	},
	// Writes args[0] bytes, then ends at EOF of stdin.
	"flood": func(args []string) {
		n, _ := strconv.Atoi(args[0])
		block := make([]byte, 1<<16)
		for n > 0 {
			k, err := os.Stdout.Write(block[:min(n, len(block))])
			if err != nil {
				os.Exit(1)
			}
			n -= k
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	// Prints its environment and working directory.
	"show": func([]string) {
		dir, _ := os.Getwd()
		fmt.Println("dir=" + dir)
		for _, entry := range os.Environ() {
			fmt.Println(entry)
		}
	},
}

func init() {
	// A host with one child that ignores everything. Prints the child's pid.
	modes["host"] = func([]string) {
		p := hostStart(os.Args[0], "ignore-all")
		_, err := fmt.Fscanln(p.Stdout, new(string)) // it is ready
		must(err)
		fmt.Println(p.Pid())
		forever()
	}

	// Starts a grandchild that ignores everything, prints its pid, and ends at
	// EOF. Options: detached (it leaves the session), job (it leaves the
	// group alone), noenv (it loses its
	// environment), devnull (it holds none of the pipes), stay (the wrapper
	// ignores EOF).
	modes["wrapper"] = func(args []string) {
		cmd := exec.Command(os.Args[0], "quiet")
		cmd.Env = append(os.Environ(), modeEnv+"=ignore-all")
		if slices.Contains(args, "detached") {
			cmd.SysProcAttr = detached
		}
		if slices.Contains(args, "job") {
			cmd.SysProcAttr = job
		}
		if !slices.Contains(args, "devnull") {
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		}
		if slices.Contains(args, "noenv") {
			cmd.Env = []string{modeEnv + "=ignore-all"}
		}
		must(cmd.Start())
		fmt.Println(cmd.Process.Pid)
		if slices.Contains(args, "stay") {
			forever()
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}

	// Prints its arguments as JSON.
	modes["args"] = func(args []string) { must(json.NewEncoder(os.Stdout).Encode(args)) }
}

func hostStart(self, mode string, args ...string) *proc.Process {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, modeEnv+"=") })
	p, err := proc.Start(proc.Config{Path: self, Args: args, Env: append(env, modeEnv+"="+mode)})
	must(err)
	return p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// forever never returns. An empty select would be taken for a deadlock.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// ready tells the test that signal handlers are in place.
func ready() { fmt.Println("ready") }

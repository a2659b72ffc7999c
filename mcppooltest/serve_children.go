package mcppooltest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// lifetime bounds everything here, should a test fail to end it.
const lifetime = time.Minute

// sleeper is the child that outlives the server.
func sleeper() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	time.Sleep(lifetime)
}

// startSleeper starts one in a session of its own; with pipes it holds those
// of the server.
func startSleeper(pipes bool) {
	cmd := again("sleeper")
	leaveGroup(cmd)
	if pipes {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "sleeper:", err)
	}
}

// wrapper is a launcher such as npx: the server is its child.
func wrapper(value string) {
	words := strings.Split(value, ",")
	kept := words[:0]
	for _, w := range words {
		if w != "wrapper" {
			kept = append(kept, w)
		}
	}
	cmd := again(kept...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		os.Exit(1)
	}
}

// again is this program in other modes.
func again(modes ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), variable+"="+strings.Join(modes, ",")) // the last one counts
	return cmd
}

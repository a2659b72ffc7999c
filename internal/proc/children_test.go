package proc_test

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
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
		signal.Notify(term, syscall.SIGTERM)
		ready()
		<-term
		os.Exit(7)
	},
	"ignore-all": func([]string) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		ready()
		select {}
	},
	// Takes its time after EOF. A SIGTERM makes it exit with 9.
	"slow-exit": func(args []string) {
		d, _ := time.ParseDuration(args[0])
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {
		case <-time.After(d):
		case <-term:
			os.Exit(9)
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

// ready tells the test that signal handlers are in place.
func ready() { fmt.Println("ready") }

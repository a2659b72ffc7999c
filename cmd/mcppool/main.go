// Mcppool works with the MCP servers that a host's configuration file names:
//
//	mcppool check .cursor/mcp.json
//
// starts each of them, lists its tools, ends it, and prints what there is to know
// before a program keeps it in a pool.
//
//	mcppool serve .cursor/mcp.json
//
// serves all of them behind one endpoint of streamable HTTP, with sessions of its own for
// each client. The README beside this file describes both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// The exit statuses.
const (
	statusFine   = 0
	statusFailed = 1 // some server can't be used, or left a process behind
	statusUsage  = 2 // nothing was asked for that can be done, or a file can't be read
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `usage: mcppool check [flags] FILE...

Starts each server of configuration files of MCP hosts (Claude, Cursor, VS Code,
Gemini CLI, Codex and others), lists its tools, ends it, and prints a table.
The exit status is 0 if all servers work, 1 if some don't, and 2 if a file can't
be read.

`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "serve" {
		o, err := parseServe(args[1:], stderr)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return statusFine
		case err != nil:
			return statusUsage
		}
		return serve(ctx, o, stderr)
	}
	if len(args) == 0 || args[0] != "check" {
		fmt.Fprint(stderr, usage, "\n", serveUsage)
		if len(args) == 1 && (args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
			return statusFine
		}
		return statusUsage
	}
	o, err := parseFlags(args[1:], stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusFine
	case err != nil:
		return statusUsage
	}
	report := check(ctx, o, stderr)
	if o.json {
		err = report.writeJSON(stdout)
	} else {
		err = report.writeTable(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mcppool:", err)
		return statusUsage
	}
	return report.status()
}

// options are what the command line says.
type options struct {
	files    []string
	reading  mcpservers.Options
	json     bool
	times    times
	parallel int
}

// times bound what is done with one server.
type times struct {
	start time.Duration // its start, and then its list of tools
	end   time.Duration
}

// grace is when a pool sends SIGTERM to a process whose input it has ended.
func (t times) grace() time.Duration { return t.end / 2 }

// hostFlags make the flags that say how the files are read.
func (o *options) hostFlags(set *flag.FlagSet) {
	set.Func("host", "the `host` whose files they are, such as cursor, where they don't say", func(s string) error {
		o.reading.Host = mcpservers.Host(s)
		if hosts := mcpservers.Hosts(); !slices.Contains(hosts, o.reading.Host) {
			return fmt.Errorf("isn't known; known are %v", hosts)
		}
		return nil
	})
	o.inputsFrom(set)
	set.StringVar(&o.reading.WorkspaceFolder, "workspace", "", "the project's `directory`, for ${workspaceFolder} and relative paths")
}

// parseFlags has said what is wrong when it returns an error.
func parseFlags(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	set := flag.NewFlagSet("check", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprint(stderr, usage)
		set.PrintDefaults()
	}
	set.BoolVar(&o.json, "json", false, "print JSON rather than a table")
	set.DurationVar(&o.times.start, "timeout", time.Minute, "how long the start of a server may take, and then its list of tools")
	set.DurationVar(&o.times.end, "close-timeout", 10*time.Second, "how long its end may take: end of input, SIGTERM after half of it, and the kill")
	set.IntVar(&o.parallel, "parallel", 4, "how many servers are looked at, at a time")
	o.hostFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	o.files = set.Args()
	var wrong string
	switch {
	case len(o.files) == 0:
		wrong = "no file is named"
	case o.times.start <= 0 || o.times.end <= 0:
		wrong = "a timeout isn't positive"
	case o.parallel <= 0:
		wrong = "-parallel is less than 1"
	default:
		return o, nil
	}
	fmt.Fprintf(stderr, "mcppool: %s\n\n", wrong)
	set.Usage()
	return nil, errors.New(wrong)
}

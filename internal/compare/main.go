// Command compare measures mcppool against mcp-go's own client, the official Go
// SDK, one process per call, and a floor without any JSON. README.md says what
// the rows mean.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"time"
)

type options struct {
	rounds     int
	batch      time.Duration
	rows       *regexp.Regexp
	contenders *regexp.Regexp
	raw        string
	cpuProfile string
	memProfile string
}

func main() {
	if runAsChild(os.Args[1:]) {
		return
	}
	opts := options{rows: regexp.MustCompile(""), contenders: regexp.MustCompile("")}
	flag.IntVar(&opts.rounds, "rounds", 7, "rounds of each row; the table has medians")
	flag.DurationVar(&opts.batch, "batch", 100*time.Millisecond, "what each contender does in one round takes about this long")
	flag.Func("rows", "measure the rows that match this `regexp`", func(s string) (err error) {
		opts.rows, err = regexp.Compile(s)
		return err
	})
	flag.Func("contenders", "measure the contenders that match this `regexp`", func(s string) (err error) {
		opts.contenders, err = regexp.Compile(s)
		return err
	})
	flag.StringVar(&opts.raw, "raw", "", "also write each round to this `file`, in the format of Go benchmarks (for benchstat)")
	flag.StringVar(&opts.cpuProfile, "cpuprofile", "", "write a CPU profile of the batches to this `file`")
	flag.StringVar(&opts.memProfile, "memprofile", "", "write a profile of every allocation to this `file`, which makes all slower")
	list := flag.Bool("list", false, "list the rows and their contenders")
	flag.Parse()
	if *list {
		for _, r := range rows() {
			fmt.Fprintf(os.Stdout, "%-28s %s\n", r.name, names(r.contenders))
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &opts); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1) //nolint:forbidigo // a program, not a library
	}
}

// runAsChild runs what a process that was started by this program is to do.
func runAsChild(args []string) bool {
	if len(args) < 2 {
		return false
	}
	switch args[0] {
	case "serve":
		serve(args[1])
	case "idle":
		if err := reportIdle(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "compare: idle:", err)
			os.Exit(1) //nolint:forbidigo // a program, not a library
		}
	default:
		return false
	}
	return true
}

func run(ctx context.Context, opts *options) error {
	if opts.memProfile != "" {
		runtime.MemProfileRate = 1
	}
	m := &measurer{opts: opts, results: make(map[string]*result)}
	if opts.raw != "" {
		f, err := os.Create(opts.raw)
		if err != nil {
			return err
		}
		defer f.Close()
		m.raw = f
	}
	if opts.cpuProfile != "" {
		f, err := os.Create(opts.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	begun := time.Now()
	fmt.Fprintf(os.Stdout, "%s, %s/%s, %d cores, %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), opts.rounds)
	group := ""
	for _, r := range rows() {
		if !opts.rows.MatchString(r.name) {
			continue
		}
		if r.group != group {
			group = r.group
			printHead(os.Stdout, group)
		}
		if err := m.row(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		m.printRow(os.Stdout, r)
	}
	if opts.rows.MatchString(idleRow) {
		if err := m.idle(ctx); err != nil {
			return fmt.Errorf("%s: %w", idleRow, err)
		}
		m.printIdle(os.Stdout)
	}
	m.printTargets(os.Stdout)
	fmt.Fprintf(os.Stdout, "\nin %.0f s\n", time.Since(begun).Seconds())
	if opts.memProfile != "" {
		f, err := os.Create(opts.memProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		return pprof.Lookup("allocs").WriteTo(f, 0)
	}
	return nil
}

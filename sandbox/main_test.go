//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
)

// modeEnv makes the test binary something else than the tests.
const modeEnv = "MCPPOOL_SANDBOX_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(modeEnv) {
	case "server":
		serve()
	case "host":
		host()
	case "":
		goleak.VerifyTestMain(m)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// host keeps a boxed server with a daemon, and is to be killed.
func host() {
	pool, err := mcppool.New(&mcppool.Options{Command: sandbox.Bubblewrap(sandbox.Rules{Read: []string{filepath.Dir(os.Args[0])}})})
	must(err)
	srv := mcppool.Server{Command: os.Args[0], Env: map[string]string{modeEnv: "server", "MARK": os.Getenv("MARK")}}
	_, err = pool.CallTool(context.Background(), srv, mcppool.Call{Tool: "daemon", Scope: "s"})
	must(err)
	fmt.Println("ready")
	select {}
}

// serve is a server that tries to get out of its box.
func serve() {
	if len(os.Args) > 1 { // a daemon
		time.Sleep(time.Minute)
		return
	}
	s := server.NewMCPServer("boxed", "1")
	for name, f := range map[string]func(arg string) (string, error){
		"read":   func(path string) (string, error) { data, err := os.ReadFile(path); return string(data), err },
		"write":  func(path string) (string, error) { return "written", os.WriteFile(path, nil, 0o600) },
		"getenv": func(name string) (string, error) { return os.Getenv(name), nil },
		"getwd":  func(string) (string, error) { return os.Getwd() },
		"dial":   dial,
		"pids":   pids,
		"daemon": daemon,
		"limit":  limit,
		"fork":   fork,
		"grow":   grow,
		"namespace": func(string) (string, error) {
			return "made", exec.CommandContext(context.Background(), "unshare", "--user", "true").Run()
		},
		"save on SIGTERM": func(path string) (string, error) {
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGTERM)
			go func() {
				<-c
				time.Sleep(300 * time.Millisecond) // whoever ends it meanwhile loses its state
				must(os.WriteFile(path, []byte("saved"), 0o600))
				os.Exit(0)
			}()
			return "ready", nil
		},
	} {
		s.AddTool(mcp.NewTool(name), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := f(req.GetString("arg", ""))
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(text), nil
		})
	}
	_ = server.ServeStdio(s)
	if os.Getenv("MARK") != "" || os.Getenv("DEAF") != "" {
		time.Sleep(time.Minute) // whatever becomes of its input
	}
}

func dial(addr string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	return "connected", conn.Close()
}

func pids(string) (string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	return fmt.Sprint(len(all)), err
}

func daemon(string) (string, error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd := exec.CommandContext(context.Background(), os.Args[0], "daemon-"+os.Getenv("MARK"))
	cmd.Env = []string{modeEnv + "=server"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return "started", cmd.Start()
}

// fork starts processes until that fails.
func fork(string) (string, error) {
	for range 100 {
		cmd := exec.CommandContext(context.Background(), "sleep", "60")
		if err := cmd.Start(); err != nil {
			return "", err
		}
	}
	return "all were started", nil
}

// grow takes 256 MB, piece by piece.
func grow(string) (string, error) {
	var all [][]byte
	for range 256 {
		piece := make([]byte, 1<<20)
		for i := range piece {
			piece[i] = 1
		}
		all = append(all, piece)
	}
	return fmt.Sprint(len(all)), nil
}

func limit(string) (string, error) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return fmt.Sprint(l.Max), err
}

// marked are the host's processes with a mark in their command line.
func marked(mark string) (found []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(err)
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			panic(err)
		}
		if strings.Contains(string(data), mark) {
			found = append(found, path)
		}
	}
	return found
}

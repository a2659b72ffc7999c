//go:build unix

package mcppool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/mcppooltest"
)

// fakeDocker is this binary as a program that runs containers as docker does: what it
// starts is only a client of them, they are found by their labels, and go on when it
// is killed. A folder holds a file for each: its pid and its labels.
func fakeDocker(t *testing.T) containerCLI {
	t.Helper()
	dir, err := os.MkdirTemp("", "docker") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cli := filepath.Join(dir, "docker")
	require.NoError(t, os.Symlink(self, cli))
	rt := containerCLI{cli: cli, args: []string{"image"}, env: map[string]string{
		modeEnv: "docker", "FAKE_DOCKER": dir, "HOST_MODE": "docker", "GORACE": "atexit_sleep_ms=0",
	}}
	t.Cleanup(func() {
		_ = os.Remove(filepath.Join(dir, "refuse"))
		for _, id := range rt.list(t, "mcppool.pool") {
			pid, _ := containerOf(dir, id)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	return rt
}

// serveDocker is one command of it.
func serveDocker() {
	dir := os.Getenv("FAKE_DOCKER")
	command, args := os.Args[1], os.Args[2:]
	if _, err := os.Stat(filepath.Join(dir, "refuse")); err == nil {
		fmt.Fprintln(os.Stderr, "the daemon is not available")
		os.Exit(1)
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	fmt.Fprintln(log, command)
	must(log.Close())
	switch command {
	case "run":
		dockerRun(dir, args)
	case "ps":
		label := strings.TrimPrefix(args[len(args)-1], "label=")
		for _, id := range containerIDs(dir) {
			_, labels := containerOf(dir, id)
			if slices.ContainsFunc(labels, func(l string) bool { return l == label || strings.HasPrefix(l, label+"=") }) {
				fmt.Println(id)
			}
		}
	case "stop":
		patience, err := strconv.Atoi(args[1])
		must(err)
		id, err := os.ReadFile(filepath.Join(dir, "n-"+args[2]))
		must(err)
		dockerStop(dir, string(id), time.Duration(patience)*time.Second)
	case "kill":
		for _, id := range args {
			dockerStop(dir, id, 0)
		}
	case "rm":
		for _, id := range args[1:] {
			dockerStop(dir, id, 0)
			_ = os.Remove(filepath.Join(dir, id))
		}
	}
}

func containerIDs(dir string) (ids []string) {
	all, err := filepath.Glob(filepath.Join(dir, "c-*"))
	must(err)
	for _, path := range all {
		ids = append(ids, filepath.Base(path))
	}
	return ids
}

func containerOf(dir, id string) (pid int, labels []string) {
	data, _ := os.ReadFile(filepath.Join(dir, id))
	lines := strings.Split(string(data), "\n")
	pid, _ = strconv.Atoi(lines[0])
	return pid, lines[1:]
}

func dockerStop(dir, id string, patience time.Duration) {
	pid, _ := containerOf(dir, id)
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for end := time.Now().Add(patience); time.Now().Before(end) && syscall.Kill(pid, 0) == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// dockerRun starts a container and is its client.
func dockerRun(dir string, args []string) {
	var (
		labels, env []string
		name        string
	)
	for i, a := range args {
		switch a {
		case "--label":
			labels = append(labels, args[i+1])
		case "--name":
			name = args[i+1]
		case "--env":
			env = append(env, args[i+1])
		}
	}
	id := fmt.Sprintf("c-%d", os.Getpid())
	must(os.WriteFile(filepath.Join(dir, "n-"+name), []byte(id), 0o600))
	listener, err := net.Listen("unix", filepath.Join(dir, "s-"+id))
	must(err)
	file, err := listener.(*net.UnixListener).File()
	must(err)
	// Through one more process, so that nothing leads from the client to the container.
	daemon := exec.CommandContext(context.Background(), os.Args[0])
	daemon.Env = []string{modeEnv + "=docker daemon", "FAKE_DOCKER=" + dir, "ENTRIES=" + strings.Join(env, "\n"), "ID=" + id, "LABELS=" + strings.Join(labels, "\n"), "GORACE=atexit_sleep_ms=0"}
	daemon.ExtraFiles = []*os.File{file}
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(daemon.Run())
	conn, err := net.Dial("unix", filepath.Join(dir, "s-"+id))
	must(err)
	_ = os.Remove(filepath.Join(dir, "s-"+id))
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, bufio.NewReader(conn))
	_ = os.Remove(filepath.Join(dir, id)) // --rm
}

// serveDockerDaemon starts the container's process and notes it.
func serveDockerDaemon() {
	listener := os.NewFile(3, "listener")
	c := exec.CommandContext(context.Background(), os.Args[0])
	c.Env = []string{modeEnv + "=docker container", "ENTRIES=" + os.Getenv("ENTRIES"), "GORACE=atexit_sleep_ms=0"}
	c.ExtraFiles = []*os.File{listener}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(c.Start())
	note := fmt.Sprintf("%d\n%s", c.Process.Pid, os.Getenv("LABELS"))
	must(os.WriteFile(filepath.Join(os.Getenv("FAKE_DOCKER"), os.Getenv("ID")), []byte(note), 0o600))
}

// serveDockerContainer is the program in the container.
func serveDockerContainer() {
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	must(err)
	conn, err := listener.Accept()
	must(err)
	file, err := conn.(*net.UnixConn).File()
	must(err)
	os.Stdin, os.Stdout = file, file
	for entry := range strings.SplitSeq(os.Getenv("ENTRIES"), "\n") {
		name, value, _ := strings.Cut(entry, "=")
		must(os.Setenv(name, value))
	}
	mcppooltest.Serve()
	must(errors.New("no server"))
}

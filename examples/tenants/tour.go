package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcppool/mcppool"
)

const (
	diary  = "I like Bob."
	secret = "the host's own"
)

// tour shows what Mallory can't do. It fails if Mallory can.
func tour(out io.Writer, dir string) error {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	hostHome := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(hostHome, 0o700), os.WriteFile(filepath.Join(hostHome, "id_ed25519"), []byte(secret), 0o600),
		os.Setenv(hostEnv, secret)); err != nil {
		return err
	}
	defer os.Unsetenv(hostEnv)
	h, err := open(dir)
	if err != nil {
		return err
	}
	err = visit(h, say, hostHome)
	if err := errors.Join(err, h.pool.Close()); err != nil {
		return err
	}
	say("\n3. The pool is closed. %s", remains(dir))
	return errors.Join(killed(h, say), isClean(dir))
}

// visit is the tour of one house.
func visit(h *house, say func(string, ...any), hostHome string) error {
	say("1. Alice, Bob and Mallory have a filesystem, a memory and a shell server each.")
	where := ""
	for _, tenant := range []string{"alice", "bob", "mallory"} {
		path, err := h.call(tenant, "filesystem", "write", map[string]any{"name": "diary", "text": diary})
		_, kept := h.call(tenant, "memory", "keep", map[string]any{"key": tenant, "text": diary})
		_, ran := h.sh(tenant, "echo ready > ready; cat ready")
		if err := errors.Join(err, kept, ran); err != nil {
			return err
		}
		if tenant == "alice" {
			where = path
		}
	}
	say("   %d processes, each in a box.", h.pool.Stats().Processes)
	if text, err := h.call("alice", "filesystem", "read", map[string]any{"name": "diary"}); err != nil || text != diary {
		return fmt.Errorf("alice doesn't have her own diary: %q, %w", text, err)
	}

	var l net.ListenConfig
	listener, err := l.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()

	say("\n2. Mallory tries.")
	var open []error
	for _, way := range ways(h, where, hostHome, listener.Addr().String()) {
		got, err := way.try()
		if err != nil || !way.gotIt(got) {
			say("   %-46s closed", way.to)
			continue
		}
		say("   %-46s OPEN", way.to) // what it got may be a secret
		open = append(open, fmt.Errorf("mallory can %s", way.to))
	}
	return errors.Join(open...)
}

// way is one that Mallory tries.
type way struct {
	to    string
	try   func() (string, error)
	gotIt func(text string) bool
}

func ways(h *house, diaryAt, hostHome, listens string) []way {
	sh := func(command string) func() (string, error) {
		return func() (string, error) { return h.sh("mallory", command) }
	}
	has := func(part string) func(string) bool {
		return func(text string) bool { return strings.Contains(text, part) }
	}
	did := func(string) bool { return true } // no error is enough
	return []way{
		{"read Alice's diary", sh("cat " + diaryAt), has(diary)},
		{"write into Alice's folder", sh("echo Mallory >> " + diaryAt), did},
		{"find anybody's folder", sh("find / -name diary 2>/dev/null"), has("diary")},
		{"recall what Alice's server knows", func() (string, error) {
			return h.call("mallory", "memory", "recall", map[string]any{"key": "alice"})
		}, has(diary)},
		{"read the host's key", sh("cat " + filepath.Join(hostHome, "id_ed25519")), has(secret)},
		{"see the host's and the others' environment", sh("env; cat /proc/*/environ 2>/dev/null; true"), func(text string) bool {
			return strings.Contains(text, secret) || strings.Contains(text, serveEnv+"=filesystem")
		}},
		{"see the host's and the others' processes", sh("ls -d /proc/[0-9]*; true"), func(text string) bool {
			return strings.Contains(text, fmt.Sprint("/proc/", os.Getpid(), "\n")) || strings.Count(text, "/proc/") > 8
		}},
		{"kill the host", sh(fmt.Sprint("kill -9 ", os.Getpid())), did},
		{"reach a service on the host's loopback", func() (string, error) {
			return h.call("mallory", "shell", "dial", map[string]any{"address": listens})
		}, did},
		{"change the system", sh("touch /usr/mallory /etc/mallory"), did},
		{"mount something", sh("mount -t tmpfs none /tmp"), did},
		{"write a file of 2 MB, where 1 MB is allowed", sh("head -c 2000000 /dev/zero > big"), did},
		{"have a fourth server", func() (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			more := h.server("shell")
			more.Env["AGAIN"] = "1"
			var held []func()
			defer func() {
				for _, release := range held {
					release()
				}
			}()
			for _, kind := range []string{"filesystem", "memory", "shell"} { // busy, or they make room
				s, err := h.pool.Acquire(ctx, h.server(kind), mcppool.Borrow{Scope: mcppool.Scope("tenants", "mallory")})
				if err != nil {
					return "", err
				}
				held = append(held, s.Release)
			}
			_, err := h.pool.CallTool(ctx, more, mcppool.Call{Tool: "run", Scope: mcppool.Scope("tenants", "mallory")})
			return "", err
		}, did},
		{"leave a daemon that nothing ends, see below", sh(`setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' >/dev/null 2>&1 & echo started`), has("nothing")},
	}
}

// killed starts a host, kills it, and looks at what it leaves.
func killed(h *house, say func(string, ...any)) error {
	host := again(h.self, "hold", h.dir)
	stdout, err := host.StdoutPipe()
	if err != nil {
		return err
	}
	if err := host.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		say("\n4. Another host holds the same, with a daemon of Mallory's: %s   It is killed (SIGKILL).", line)
	}
	killErr := host.Process.Kill()
	_ = host.Wait() // it was killed
	if err := errors.Join(err, killErr); err != nil {
		return err
	}
	for range 1000 { // the kernel takes a moment
		if len(marked(h.dir)) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	say("   %s", remains(h.dir))
	looks := again(h.self, "left", h.dir)
	text, err := looks.Output()
	say("   The next pool on the machine: %s", strings.TrimSpace(string(text)))
	return err
}

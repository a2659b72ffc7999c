// Tenants runs servers for people who don't trust each other, one of whom is hostile:
//
//	go run ./examples/tenants
//
// Alice, Bob and Mallory have a filesystem, a memory and a shell server each, every one in
// a box of its own. Mallory tries every way to the others and to the host, and the tour
// shows that it is closed; then the host is killed, and nothing is left. It needs Linux and
// bubblewrap (bwrap). The servers are this program again, see servers.go.
//
// What the tour does by itself can be done by hand: `tenants hold DIR` keeps sessions with
// what they hold in DIR until it is killed, and `tenants left DIR` says what it has left.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
	"github.com/mcppool/mcppool/toolbox"
)

const (
	// serveEnv makes this program the server that it names.
	serveEnv = "TENANTS_SERVE"
	// markEnv has the folder of a host; all processes of its servers have it.
	markEnv = "TENANTS_MARK"
	// hostEnv is a secret of the host's, which no server has.
	hostEnv = "TENANTS_HOST_SECRET"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case os.Getenv(serveEnv) != "":
		return serve(os.Getenv(serveEnv))
	case len(args) == 0:
		dir, err := os.MkdirTemp("", "tenants-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		return tour(os.Stdout, dir)
	case len(args) == 2 && args[0] == "hold":
		return hold(os.Stdout, args[1])
	case len(args) == 2 && args[0] == "left":
		return left(os.Stdout, args[1])
	default:
		return fmt.Errorf("usage: tenants [hold DIR | left DIR]")
	}
}

// house is a pool of the tenants' servers below a folder.
type house struct {
	dir  string
	self string // this program
	pool *mcppool.Pool
}

func open(dir string) (*house, error) {
	if err := sandbox.Available(); err != nil {
		return nil, fmt.Errorf("this example needs Linux and bubblewrap: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// A box shows the system and this program, read-only, the session's own folder, and
	// nothing else: no network, no home, no other process.
	box := sandbox.Bubblewrap(sandbox.Rules{
		Read:   []string{self},
		Limits: sandbox.Limits{FileSize: 1 << 20, OpenFiles: 64},
	})
	pool, err := mcppool.New(&mcppool.Options{
		Command:    box,
		ScratchDir: filepath.Join(dir, "scratch"),
		Limits:     mcppool.Limits{MaxPerScope: 3},
	})
	return &house{dir, self, pool}, err
}

// server is one of the kinds: filesystem, memory or shell. Of each every tenant has a
// session of its own, with a folder that is kept for the tenant.
func (h *house) server(kind string) mcppool.Server {
	return mcppool.Server{
		Name:       kind,
		Command:    h.self,
		Env:        map[string]string{serveEnv: kind, markEnv: h.dir, "HOME": "/home/tenant"},
		Dir:        "${mcppool.dir}",
		PrivateDir: mcppool.DirPerScope,
	}
}

// call calls a tool in a tenant's session and returns its text; the error is the tool's or
// the call's.
func (h *house) call(tenant, kind, tool string, args map[string]any) (string, error) {
	ctx := context.Background()
	res, err := h.pool.CallTool(ctx, h.server(kind), mcppool.Call{Tool: tool, Args: args, Scope: mcppool.Scope("tenants", tenant)})
	if err != nil {
		return "", err
	}
	text := toolbox.Text(res)
	if res.IsError {
		return "", fmt.Errorf("%s", text)
	}
	return text, nil
}

// sh runs a command in a tenant's shell.
func (h *house) sh(tenant, command string) (string, error) {
	return h.call(tenant, "shell", "run", map[string]any{"command": command})
}

// again starts this program with arguments.
func again(self string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), self, args...)
	cmd.Stderr = os.Stderr
	return cmd
}

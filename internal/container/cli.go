package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcppool/mcppool/internal/lastwords"
)

// cli is a program that runs containers, as a server's command line calls it: with the
// same options before its commands, environment, folder and user.
type cli struct {
	path string
	args []string // what is before the command
	env  []string
	dir  string
	attr *syscall.SysProcAttr
}

func cliOf(cmd *exec.Cmd, run Run) *cli {
	args := cmd.Args[1:run.at]
	if n := len(args); n > 0 && args[n-1] == "container" {
		args = args[:n-1]
	}
	c := &cli{path: cmd.Path, args: slices.Clone(args), env: slices.Clone(cmd.Env), dir: cmd.Dir}
	if cmd.SysProcAttr != nil {
		attr := *cmd.SysProcAttr
		c.attr = &attr
	}
	return c
}

// key stands for what c calls.
func (c *cli) key() string {
	hash := sha256.New()
	where := []string{"CONTAINER_HOST=", "DOCKER_CONTEXT=", "DOCKER_HOST="}
	for _, entry := range c.env {
		if slices.ContainsFunc(where, func(name string) bool { return strings.HasPrefix(entry, name) }) {
			fmt.Fprintf(hash, "%q", entry)
		}
	}
	fmt.Fprintf(hash, "%q %q", c.path, c.args)
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// drainTime bounds the wait for what a command that was killed has left at its output.
const drainTime = 100 * time.Millisecond

// do runs one command, which ends with ctx, and returns its output.
func (c *cli) do(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, slices.Concat(c.args, args)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.env, c.dir, drainTime
	if c.attr != nil {
		attr := *c.attr
		cmd.SysProcAttr = &attr
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.As(err, &exit):
		err = fmt.Errorf("%s: %w; stderr: %s", args[0], err, lastwords.Of(string(exit.Stderr)))
	}
	return string(out), err
}

// list returns the ids of the containers that have a label, whatever their state.
func (c *cli) list(ctx context.Context, label string) ([]string, error) {
	out, err := c.do(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+label)
	return strings.Fields(out), err
}

// stop has a container stopped as its image says, and killed after patience, which is in
// whole seconds.
func (c *cli) stop(ctx context.Context, name string, patience time.Duration) {
	_, _ = c.do(ctx, "stop", "-t", strconv.Itoa(int(patience/time.Second)), name)
}

// removePause is the pause between two looks for containers that go.
const removePause = 50 * time.Millisecond

// remove removes the containers that have a label, and returns once they are gone.
func (c *cli) remove(ctx context.Context, label string) error {
	why := errors.New("there was no time to see it go")
	for {
		gone, err := c.tryRemove(ctx, label)
		if gone {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			why = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the container with the label %s may be left: %w", label, why)
		case <-time.After(removePause):
		}
	}
}

// tryRemove removes what there is, and reports whether there was nothing.
func (c *cli) tryRemove(ctx context.Context, label string) (gone bool, err error) {
	ids, err := c.list(ctx, label)
	if err != nil || len(ids) == 0 {
		return err == nil, err
	}
	_, _ = c.do(ctx, slices.Concat([]string{"kill"}, ids)...) // podman's rm waits for SIGTERM first
	_, err = c.do(ctx, slices.Concat([]string{"rm", "--force"}, ids)...)
	return false, err
}

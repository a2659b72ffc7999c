package proc_test

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
)

func TestPrepareMayChangeWhatIsStarted(t *testing.T) {
	dir := tempDir(t)
	want := selfConfig(t, "show")
	var seen exec.Cmd
	p := start(t, proc.Config{
		Path: "/nowhere/at/all", Args: []string{"an", "argument"}, Env: []string{"A=b"}, Dir: "/nowhere",
		Prepare: func(cmd *exec.Cmd) error {
			seen = *cmd
			cmd.Path, cmd.Dir = want.Path, dir
			cmd.Env = append(cmd.Env, want.Env...)
			cmd.Stdout = io.Discard
			return nil
		},
	})
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	p.Drained()
	require.Equal(t, []string{"/nowhere/at/all", "an", "argument"}, seen.Args)
	require.Equal(t, "/nowhere", seen.Dir)
	require.Contains(t, string(out), "dir="+dir+"\n", "the standard streams stay what they are")
	require.Contains(t, string(out), "A=b\n")
}

func TestStartFailsWithTheErrorOfPrepareAndStartsNothing(t *testing.T) {
	errNo := errors.New("no sandbox here")
	cfg := selfConfig(t, "echo")
	cfg.Prepare = func(*exec.Cmd) error { return errNo }
	cfg.OnExit = func() { t.Error("it ran") }
	_, err := proc.Start(cfg)
	var prepareErr *proc.PrepareError
	require.ErrorAs(t, err, &prepareErr)
	require.ErrorIs(t, err, errNo)
}

func TestWhatPrepareKeepsForManyCommandsIsLeftAsItIs(t *testing.T) {
	var shared syscall.SysProcAttr
	cfg := selfConfig(t, "echo")
	cfg.Prepare = func(cmd *exec.Cmd) error {
		cmd.SysProcAttr, cmd.Args = &shared, nil
		return nil
	}
	p := start(t, cfg)
	p.Drained()
	require.NoError(t, p.Stop(bound))
	require.Equal(t, syscall.SysProcAttr{}, shared)
}

package proc

import (
	"os/exec"
	"slices"
	"syscall"
)

// command returns how the program is to be started: as cfg says, changed by its
// Prepare. SysProcAttr is a copy, which the caller may change.
func (cfg *Config) command() (*exec.Cmd, error) {
	cmd := &exec.Cmd{
		Path:        cfg.Path,
		Args:        append([]string{cfg.Path}, cfg.Args...),
		Env:         append([]string{}, cfg.Env...), // not nil, which is the host's to os/exec
		Dir:         cfg.Dir,
		SysProcAttr: &syscall.SysProcAttr{},
	}
	if cfg.Prepare == nil {
		return cmd, nil
	}
	if err := cfg.Prepare(cmd); err != nil {
		return nil, &PrepareError{Err: err}
	}
	if len(cmd.Args) == 0 {
		cmd.Args = []string{cmd.Path}
	}
	cmd.Env = slices.Clone(cmd.Env)
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr // which a hook may use for many commands
	}
	cmd.SysProcAttr = &attr
	return cmd, nil
}

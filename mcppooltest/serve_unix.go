//go:build unix

package mcppooltest

import (
	"os/exec"
	"syscall"
)

func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

//go:build unix

package hostile

import (
	"os/exec"
	"syscall"
)

func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

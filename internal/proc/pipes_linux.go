package proc

import (
	"os"
	"syscall"
)

// open makes each end what it is to be from the start. What os.Pipe gives is
// watched by the runtime's poller at both ends, and the child's ends would have
// to be taken out of it again.
func (ps *pipes) open() error {
	for i := range 3 {
		var ends [2]int
		err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC)
		host, child := 0, 1
		if i == 0 {
			host, child = 1, 0
		}
		if err == nil {
			ps.child[i] = os.NewFile(uintptr(ends[child]), "pipe")
			err = syscall.SetNonblock(ends[host], true)
			ps.host[i] = os.NewFile(uintptr(ends[host]), "pipe")
		}
		if err != nil {
			ps.closeChild()
			ps.closeHost()
			return os.NewSyscallError("pipe", err)
		}
	}
	return nil
}

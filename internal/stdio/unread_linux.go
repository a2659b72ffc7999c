package stdio

import (
	"syscall"
	"unsafe"
)

// unreadNow is Unread while the pipe is open.
func (c *Conn) unreadNow() (n int, ok bool) {
	const fionread = 0x541B // see ioctl_pipe(2); it works on either end
	var unread int32
	err := c.stdin.conn.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, fionread, uintptr(unsafe.Pointer(&unread)))
		ok = errno == 0
	})
	return int(unread), ok && err == nil
}

package stdio

import (
	"syscall"
	"unsafe"
)

// Unread is how many bytes of what was written the server has not read yet: as
// long as there are any it hasn't begun, or doesn't read. ok is false where that
// can't be known, as on other systems than Linux, or after the end.
func (c *Conn) Unread() (n int, ok bool) {
	const fionread = 0x541B // see ioctl_pipe(2); it works on either end
	var unread int32
	err := c.stdin.conn.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, fionread, uintptr(unsafe.Pointer(&unread)))
		ok = errno == 0
	})
	return int(unread), ok && err == nil
}

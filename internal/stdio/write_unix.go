//go:build unix

package stdio

import "syscall"

// writeSome writes what the pipe takes without waiting, 0 if it is full.
func (c *Conn) writeSome(fd uintptr, b []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), b)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return 0, nil
		}
		return 0, err
	}
}

// tryWrite does a turn of the writer without waiting.
func (c *Conn) tryWrite() verdict {
	if err := c.stdin.conn.Control(c.out.try); err != nil {
		c.out.failure = err
		return writeFail
	}
	return c.out.verdict
}

// waitWrite does a turn of the writer once the pipe takes something.
func (c *Conn) waitWrite() error {
	return c.stdin.conn.Write(func(fd uintptr) bool {
		c.out.verdict = c.turn(fd)
		return c.out.verdict != blocked
	})
}

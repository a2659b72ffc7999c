//go:build unix

package stdio

import "syscall"

// failedWriteIsExact is whether a write that fails has written what it counts and
// no more. A variable for the tests alone.
var failedWriteIsExact = true

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
func (c *Conn) tryWrite(own *outgoing) verdict {
	if err := c.stdin.conn.Control(own.try); err != nil {
		c.out.failure = err
		return writeFail
	}
	return own.verdict
}

// waitWrite does a turn of the writer once the pipe takes something.
func (c *Conn) waitWrite() (v verdict, err error) {
	err = c.stdin.conn.Write(func(fd uintptr) bool {
		v = c.turn(fd)
		return v != blocked
	})
	return v, err
}

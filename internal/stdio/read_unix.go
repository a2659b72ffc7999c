//go:build unix

package stdio

import (
	"io"
	"os"
	"syscall"
	"time"
)

// lastReads returns a read that never waits: what is in the pipe now, and then
// an end. A process that goes on writing isn't listened to for long.
func (f rawFile) lastReads() func([]byte) (int, error) {
	until := time.Now().Add(reasonTime)
	return func(b []byte) (n int, err error) {
		if time.Now().After(until) {
			return 0, os.ErrClosed
		}
		if e := f.conn.Control(func(fd uintptr) { n, err = readSome(fd, b) }); e != nil {
			return 0, e
		}
		return n, err
	}
}

// readSome reads what the pipe holds, without waiting. Its error is io.EOF when
// nobody can write any more, and errEmpty when there is nothing now.
func readSome(fd uintptr, b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, errEmpty
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

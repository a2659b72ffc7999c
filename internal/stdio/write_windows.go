package stdio

import (
	"errors"
	"os"
	"time"
)

// failedWriteIsExact is whether a write that fails has written what it counts and
// no more: one that is cancelled or cut short may have.
var failedWriteIsExact = false

// writeSome writes a part of b, and waits for that: Windows has no write that
// takes what fits.
func (c *Conn) writeSome(_ uintptr, b []byte) (int, error) {
	b = b[:min(len(b), readChunk)]
	err := c.stdin.file.SetWriteDeadline(time.Now().Add(c.cfg.WriteStall))
	if err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	return c.stdin.file.Write(b)
}

// tryWrite leaves the job to pump, which may wait.
func (c *Conn) tryWrite(*outgoing) verdict { return blocked }

// waitWrite does a turn of the writer.
func (c *Conn) waitWrite() (verdict, error) {
	v := c.turn(0)
	if v == writeFail && errors.Is(c.out.failure, os.ErrDeadlineExceeded) {
		return v, os.ErrDeadlineExceeded
	}
	return v, nil
}

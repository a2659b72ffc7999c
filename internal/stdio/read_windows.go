package stdio

import "time"

// lastReads returns a read that waits for little: what is in the pipe now, and
// then an end.
func (f rawFile) lastReads() func([]byte) (int, error) {
	until := time.Now().Add(reasonTime)
	return func(b []byte) (int, error) {
		next := time.Now().Add(10 * time.Millisecond)
		if next.After(until) {
			next = until
		}
		if err := f.file.SetReadDeadline(next); err != nil {
			return 0, err
		}
		return f.file.Read(b)
	}
}

//go:build !linux

package proc

// RSS is for Linux; here ok is always false.
func (p *Process) RSS() (rss int64, ok bool) { return 0, false }

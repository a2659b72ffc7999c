//go:build !linux

package stdio

// unreadNow is Unread while the pipe is open.
func (c *Conn) unreadNow() (n int, ok bool) { return 0, false }

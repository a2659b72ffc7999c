//go:build !linux

package stdio

// Unread is how many bytes of what was written the server has not read yet: as
// long as there are any it hasn't begun, or doesn't read. ok is false where that
// can't be known, as on other systems than Linux, or after the end.
func (c *Conn) Unread() (n int, ok bool) { return 0, false }

package stdio

// unread is how many bytes a process that has exited had left in its stdin.
type unread struct {
	bytes int
	known bool
}

// noteUnread looks when the process has exited; the pipe is closed soon after.
func (c *Conn) noteUnread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil { // else nothing was written
		c.unread.bytes, c.unread.known = c.unreadNow()
	}
}

// Unread is how many bytes of what was written the server has not read yet: as
// long as there are any it hasn't begun, or doesn't read; after its exit, how many it
// never read. ok is false where that can't be known, as on other systems than Linux.
func (c *Conn) Unread() (n int, ok bool) {
	c.mu.Lock()
	exit := c.unread
	c.mu.Unlock()
	if exit.known {
		return exit.bytes, true
	}
	return c.unreadNow()
}

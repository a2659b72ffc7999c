package stdio

import "github.com/mcppool/mcppool/internal/proc"

// ExitOf returns how the server's process ended.
func ExitOf(c *Conn) proc.Exit { return c.proc.Exit() }

// Pending returns how many calls wait for an answer.
func Pending(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

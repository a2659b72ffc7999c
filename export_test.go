package mcppool

// Remembered counts what the pool holds of servers, scopes and idle times.
func Remembered(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions) + len(p.servers) + len(p.scopes) + len(p.idle.classes) + p.idle.len + p.open
}

// ReapOldest does what the reaper does when the time of the longest idle
// session is up.
func ReapOldest(p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlinkLocked(p.idle.oldest(nil), CloseIdle)
}

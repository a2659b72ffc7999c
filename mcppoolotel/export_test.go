package mcppoolotel

// Remembered is how many connects and sessions are remembered.
func (t *Telemetry) Remembered() (n int) {
	count := func(any, any) bool { n++; return true }
	t.connects.Range(count)
	t.protocols.Range(count)
	return n
}

package mcpconn

import "time"

// SetProbeTime sets how long a server may be silent, until the func it returns is
// called.
func SetProbeTime(d time.Duration) (restore func()) {
	old := probeTime
	probeTime = d
	return func() { probeTime = old }
}

// MaxEras bounds what Eras remembers.
const MaxEras = maxEras

func (e *Eras) Of(command [16]byte) Era       { return e.get(command) }
func (e *Eras) Set(command [16]byte, era Era) { e.set(command, era) }
func (e *Eras) Len() int                      { return len(e.of) }

// Streams counts the resources that there is a stream for.
func (c *Conn) Streams() int {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	return len(c.streams.ofResource)
}

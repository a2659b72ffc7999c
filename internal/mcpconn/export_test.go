package mcpconn

import (
	"time"

	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// SetProbeTime sets how long a server may be silent, until the func it returns is
// called.
func SetProbeTime(d time.Duration) (restore func()) {
	old := probeTime
	probeTime = d
	return func() { probeTime = old }
}

// SetDoubtTime sets how long a server gets that may have answered in a way that makes no
// sense, until the func it returns is called.
func SetDoubtTime(d time.Duration) (restore func()) {
	old := doubtTime
	doubtTime = d
	return func() { doubtTime = old }
}

// NotKnowingWhatIsUnread does as on the systems where that can't be known, until the
// func it returns is called. An exit within soon may then be the question's doing.
func NotKnowingWhatIsUnread(soon time.Duration) (restore func()) {
	oldUnread, oldTime := unread, killTime
	unread = func(*stdio.Conn) (int, bool) { return 0, false }
	killTime = soon
	return func() { unread, killTime = oldUnread, oldTime }
}

// MaxEras bounds what Eras remembers.
const MaxEras = maxEras

func (e *Eras) Of(command [16]byte) rpc.Era       { return e.get(command).era }
func (e *Eras) Set(command [16]byte, era rpc.Era) { e.set(command, memory{era: era}) }
func (e *Eras) Len() int                          { return len(e.of) }
func (e *Eras) Slow(command [16]byte) bool        { return e.get(command).slow }

// Age makes what is known of a command as old as it takes for a mishap to be forgotten.
func (e *Eras) Age(command [16]byte) {
	m := e.get(command)
	if !m.doubted.IsZero() {
		m.doubted = m.doubted.Add(-mishapTime)
	}
	e.set(command, m)
}

// Streams counts the resources that there is a stream for.
func (c *Conn) Streams() int { return c.streams.Len() }

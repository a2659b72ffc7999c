package mcppoolotel

import "github.com/mcppool/mcppool"

// TraceForTest is Trace, and how many connects and sessions it remembers.
func TraceForTest(opts *Options) (*mcppool.Trace, func() int) {
	t := newTelemetry(opts)
	return t.hooks(), func() (n int) {
		count := func(any, any) bool { n++; return true }
		t.connects.Range(count)
		t.protocols.Range(count)
		return n
	}
}

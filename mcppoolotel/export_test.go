package mcppoolotel

import "github.com/mcppool/mcppool"

// TraceForTest is Trace, and how many sessions it remembers.
func TraceForTest(opts *Options) (*mcppool.Trace, func() int) {
	t := newTelemetry(opts)
	return t.hooks(), func() (n int) {
		t.sessions.Range(func(any, any) bool { n++; return true })
		return n
	}
}

//go:build !linux

package stdio

// watch is never made here: each connection has a goroutine that reads stderr.
type watch struct{}

func watchReadable(rawFile, func(*watch)) *watch { return nil }

func (*watch) again() {}
func (*watch) stop()  {}

func (*stderrDrain) pass() (int, error) { panic("bug: a pass over stderr without a watch") }

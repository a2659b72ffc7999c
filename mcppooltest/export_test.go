package mcppooltest

import "time"

// SetLeakTime changes how long NoLeaks waits, until undo.
func SetLeakTime(d time.Duration) (undo func()) {
	old := leakTime
	leakTime = d
	return func() { leakTime = old }
}

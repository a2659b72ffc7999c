// Package await waits for channels, within bounds.
package await

import "time"

// Closed waits for ch to be closed, at most d, and reports whether it was. With zero or
// less it doesn't wait.
func Closed(ch <-chan struct{}, d time.Duration) bool {
	select {
	case <-ch:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ch:
		return true
	case <-timer.C:
		return false
	}
}

//go:build !unix

package main

import "time"

// cpuTime isn't known here, so the CPU columns are empty.
func cpuTime() time.Duration { return 0 }

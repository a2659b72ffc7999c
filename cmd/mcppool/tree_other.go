//go:build !linux

package main

// process is one that belonged to a server. Which those are isn't known here.
type process struct {
	pid      int
	resident int64
}

func treeOf(int) []process { return nil }

func (p *process) lives() bool { return false }

package proc

import "time"

// SetDrainTime sets how long the end of a tree waits for its reader, until the
// function it returns is called.
func SetDrainTime(d time.Duration) (restore func()) {
	old := drainTime
	drainTime = d
	return func() { drainTime = old }
}

// StartWithoutPidfd is Start on a kernel that has no pidfds.
func StartWithoutPidfd(cfg Config) (*Process, error) {
	cmd, err := cfg.command()
	if err != nil {
		return nil, err
	}
	var ends pipes
	if err := ends.open(); err != nil {
		return nil, err
	}
	tree, err := startTree(cmd, ends.child)
	ends.closeChild()
	if err != nil {
		ends.closeHost()
		return nil, err
	}
	tree.pidfd.Close()
	tree.pidfd = nil
	return watched(cfg, tree, ends), nil
}

// HoldSweeps keeps sweeps from walking until the function it returns is called,
// which reports how many trees the next walk is to look for.
func HoldSweeps() (release func() (waiting int)) {
	sweeps.walking <- struct{}{}
	return func() int {
		defer func() { <-sweeps.walking }()
		return SweepsWaiting()
	}
}

// SweepsWaiting returns how many trees the next walk is to look for.
func SweepsWaiting() int {
	sweeps.mu.Lock()
	defer sweeps.mu.Unlock()
	if sweeps.next == nil {
		return 0
	}
	return len(sweeps.next.trees)
}

// WalkUntil looks for the members of p's tree until deadline.
func WalkUntil(p *Process, deadline time.Time) (members int, whole bool) {
	s := newSweep()
	s.add(p.tree.want(nil))
	s.run(deadline)
	return len(s.found[0]), !s.cut
}

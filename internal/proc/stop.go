package proc

import (
	"time"

	"github.com/mcppool/mcppool/internal/await"
)

const (
	// endTime is what a killed tree may take to be gone, beyond the timeout of Stop.
	endTime = time.Second

	// busyTime is what it may take if nothing but the host's load hinders its end.
	busyTime = 10 * time.Second
)

// Stop ends the tree as the MCP specification has clients end a stdio server,
// and returns once Done is closed. It closes Stdin; Config.Grace later, by default
// half the timeout, it sends SIGTERM to the group (Windows: CTRL_BREAK); and a
// tenth of the timeout before its end, or a second if that is less, it kills the
// tree. Config.TermFirst exchanges the first two steps. A step that can't be taken,
// as there is no console to send CTRL_BREAK through, takes no time. A program that
// exits in time is bothered no further. Zero or less kills at once.
//
// Stop returns a second after the timeout at the latest. What can't be ended, as it
// belongs to another user or hangs in the kernel, is left to itself, and Stop returns a
// *[LeftError]. On Linux it waits for ten seconds more if the host is only too busy to
// have ended by then what it killed.
//
// Stop may be called any number of times and concurrently: all callers wait for
// Done and return the same, and the shortest of their timeouts is what counts.
func (p *Process) Stop(timeout time.Duration) error {
	timeout = max(timeout, 0)
	deadline := time.Now().Add(timeout + endTime)
	p.request()
	p.tree.look()
	first, second := p.closeInput, p.terminate
	if p.cfg.TermFirst != nil && p.cfg.TermFirst() {
		first, second = second, first
	}
	grace, rest := stopPhases(timeout, p.cfg.Grace)
	if !p.exitsAfter(first, grace) && !p.exitsAfter(second, rest) {
		p.closeInput()
		_ = p.tree.kill()
	}
	p.awaitEnd(deadline)
	return p.Err()
}

// awaitEnd waits for Done, which it closes itself if nothing else does.
func (p *Process) awaitEnd(deadline time.Time) {
	last := deadline.Add(busyTime)
	for !await.Closed(p.done, time.Until(deadline)) {
		err := p.tree.kill()
		exited := await.Closed(p.exited, 0)
		if time.Now().After(last) || !exited && (err != nil || p.tree.hangs()) {
			p.giveUp(exited, err)
			return
		}
		deadline = time.Now().Add(endTime / 10)
	}
}

// stopPhases splits the time that Stop has: what a program gets after the first
// step, and after the second. What remains is the reserve in which a killed tree is
// reaped.
func stopPhases(timeout, want time.Duration) (grace, rest time.Duration) {
	both := timeout - min(timeout/10, time.Second)
	if grace = min(want, both); want <= 0 {
		grace = timeout / 2
	}
	return grace, both - grace
}

// exitsAfter takes one step of Stop, and reports whether the program exits within d
// of it.
func (p *Process) exitsAfter(step func() (taken bool), d time.Duration) bool {
	return d > 0 && step() && await.Closed(p.exited, d)
}

func (p *Process) closeInput() (taken bool) {
	p.Stdin.Close()
	return true
}

// terminate asks the tree to end, once, and reports whether it could be asked.
// To some servers a second SIGTERM means to give up their clean-up.
func (p *Process) terminate() (taken bool) {
	p.termOnce.Do(func() { p.termSent = p.tree.terminate() })
	return p.termSent
}

// giveUp ends the wait for a tree that could not be ended. Should it end after all,
// watch reaps it.
func (p *Process) giveUp(exited bool, killErr error) {
	left := &LeftError{Pids: []int{p.Pid()}, Err: killErr}
	if exited {
		left = &LeftError{Err: errUnseen}
	}
	p.end(left)
}

// Kill kills the whole tree now and doesn't wait: Done is closed when it is gone.
// A tree that can't be ended is given up by Stop alone.
func (p *Process) Kill() {
	p.request()
	_ = p.tree.kill()
}

func (p *Process) request() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasExited {
		p.requested = true
	}
}

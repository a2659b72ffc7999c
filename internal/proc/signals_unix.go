//go:build unix

package proc

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// deadly are the signals that end a program by default and that hosts ignore: all of
// them under nohup or in the background of a shell, or by signal.Ignore.
//
// Those of job control are left: they reach nobody who has no terminal. So is SIGCHLD:
// children of the host that ended while it isn't ignored would stay zombies.
var deadly = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
	syscall.SIGALRM, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// defaults is used around every fork.
var defaults = handlers{sink: make(chan os.Signal)}

// handlers gives the signals that the host ignores a handler while something is
// started. An exec sets handlers back to the default, but leaves what is ignored
// ignored.
//
// The handler does nothing, so that to the host the signals stay ignored. What it
// can't keep is a change that the host makes to one of them at that very moment: the
// signal is ignored again afterwards.
type handlers struct {
	sink chan os.Signal // nobody reads it, and os/signal doesn't wait

	mu      sync.Mutex // protects the fields below
	starts  int        // under way
	ignored []os.Signal
}

func (h *handlers) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts++
	if h.starts > 1 {
		return
	}
	for _, sig := range deadly {
		if signal.Ignored(sig) {
			h.ignored = append(h.ignored, sig)
		}
	}
	if len(h.ignored) > 0 { // of no signals it would mean all
		signal.Notify(h.sink, h.ignored...)
	}
}

func (h *handlers) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts--
	if h.starts == 0 && len(h.ignored) > 0 {
		signal.Ignore(h.ignored...)
		h.ignored = nil
	}
}

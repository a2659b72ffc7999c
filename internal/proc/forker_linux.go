package proc

import (
	"runtime"
	"sync"
)

// forks is where every child of this package is forked.
var forks forker

// forker runs functions on one OS thread.
//
// A parent-death signal is sent when the thread that forked ends, not when the
// process does, and the runtime ends threads as it likes. So children are
// forked on a thread that is kept for as long as there is one. It goes back to
// the runtime with the last of them: a program with no child has no goroutine
// of this package.
type forker struct {
	mu    sync.Mutex // protects the fields below
	users int        // children not yet reaped, and starts under way
	jobs  chan func()
	ended chan struct{}
}

// acquire keeps the thread until the matching release.
func (f *forker) acquire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	if f.users == 1 {
		f.jobs, f.ended = make(chan func()), make(chan struct{})
		go serve(f.jobs, f.ended)
	}
}

// run runs job on the thread. The caller must have acquired it.
func (f *forker) run(job func()) {
	f.mu.Lock()
	jobs := f.jobs
	f.mu.Unlock()
	finished := make(chan struct{})
	jobs <- func() {
		defer close(finished)
		job()
	}
	<-finished
}

// release undoes one acquire. The last one returns once the thread is free.
func (f *forker) release() {
	f.mu.Lock()
	f.users--
	if f.users > 0 {
		f.mu.Unlock()
		return
	}
	jobs, ended := f.jobs, f.ended
	f.jobs, f.ended = nil, nil
	f.mu.Unlock()
	close(jobs)
	<-ended
}

func serve(jobs <-chan func(), ended chan<- struct{}) {
	defer close(ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for job := range jobs {
		job()
	}
}

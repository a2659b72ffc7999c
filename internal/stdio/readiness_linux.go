package stdio

import (
	"os"
	"sync"
	"syscall"
)

// readiness tells when pipes become readable: one goroutine and one descriptor
// for all connections of the host, however many. It lives while there is a
// watch.
type readiness struct {
	poll  rawFile // an epoll descriptor, itself in the runtime's poller
	epfd  int
	ended chan struct{}

	mu      sync.Mutex // protects the fields below
	last    int32
	watches map[int32]*watch
}

// watch is one pipe that is watched.
type watch struct {
	in    *readiness
	id    int32 // not the descriptor: an event that is late must not meet its successor
	file  rawFile
	ready func(*watch)
}

var watching struct {
	mu  sync.Mutex // protects now, and is held while a watch is added or removed
	now *readiness
}

// watchReadable has ready called once when file becomes readable or reaches its
// end; ready must not block. It returns nil if the kernel refuses.
func watchReadable(file rawFile, ready func(*watch)) *watch {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	r := watching.now
	if r == nil {
		if r = newReadiness(); r == nil {
			return nil
		}
		watching.now = r
	}
	w, empty := r.add(file, ready)
	if empty {
		watching.now = nil
	}
	return w
}

func newReadiness() *readiness {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd) // nothing was written to it
		return nil
	}
	r := &readiness{
		poll:    newRawFile(os.NewFile(uintptr(fd), "epoll")),
		epfd:    fd,
		ended:   make(chan struct{}),
		watches: make(map[int32]*watch),
	}
	go r.run()
	return r
}

// add begins a watch. If it fails, it reports whether r has ended for lack of
// any.
func (r *readiness) add(file rawFile, ready func(*watch)) (w *watch, ended bool) {
	w = &watch{in: r, file: file, ready: ready}
	r.mu.Lock()
	for r.last++; r.watches[r.last] != nil; r.last++ {
	}
	w.id = r.last
	r.watches[w.id] = w
	r.mu.Unlock()
	if w.control(syscall.EPOLL_CTL_ADD) != nil {
		return nil, r.remove(w)
	}
	return w, false
}

func (w *watch) control(op int) error {
	var failure error
	err := w.file.conn.Control(func(fd uintptr) {
		failure = syscall.EpollCtl(w.in.epfd, op, int(fd), &syscall.EpollEvent{
			Events: syscall.EPOLLIN | syscall.EPOLLONESHOT, Fd: w.id,
		})
	})
	if err != nil {
		return err
	}
	return failure
}

// again has ready called once more. A pipe that is closed is left alone.
func (w *watch) again() { _ = w.control(syscall.EPOLL_CTL_MOD) }

// stop ends the watch; ready isn't called after it.
func (w *watch) stop() {
	watching.mu.Lock()
	last := w.in.remove(w)
	if last {
		watching.now = nil
	}
	watching.mu.Unlock()
	if last {
		<-w.in.ended
	}
}

// remove forgets w. The last one ends the goroutine, and r with it.
func (r *readiness) remove(w *watch) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, w.id)
	if len(r.watches) > 0 {
		return false
	}
	_ = r.poll.file.Close() // what wakes run
	return true
}

func (r *readiness) run() {
	defer close(r.ended)
	var events [32]syscall.EpollEvent
	for {
		var n int
		err := r.poll.conn.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), events[:], 0)
			return n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			r.ready(e.Fd)
		}
	}
}

// ready calls with the lock held, so that none of a watch comes after its end.
func (r *readiness) ready(id int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.watches[id]; w != nil {
		w.ready(w)
	}
}

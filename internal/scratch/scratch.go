// Package scratch makes the folders that sessions have to themselves, and removes them.
package scratch

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/mcppool/mcppool/internal/tenure"
)

// Dirs are the folders of one pool. Its methods may be called from any goroutine.
type Dirs struct {
	Base string // of a tenure for each pool
	Pool string // its id, unique on the machine

	work     sync.WaitGroup
	begin    sync.Once // of the next two
	tenure   *tenure.Tenure
	beginErr error

	mu    sync.Mutex // protects the fields below
	made  int
	kept  map[Owner]*Dir // those that outlive a session
	ended bool
}

// Owner is who has a folder for longer than a session.
type Owner struct {
	Server [16]byte
	Scope  string
}

// Dir is one folder.
type Dir struct {
	path string // set by make
	make sync.Once
	err  error // of make

	// Protected by Dirs.mu.
	users int
	over  bool // it goes with the last user
}

// Path is where the folder is; empty for none.
func (dir *Dir) Path() string {
	if dir == nil {
		return ""
	}
	return dir.path
}

// Make makes a folder for one session, which Leave removes.
func (d *Dirs) Make() (*Dir, error) { return d.ready(&Dir{users: 1, over: true}) }

// Keep returns the folder of an owner, which is made if there is none. It stays when the
// session leaves it, until EndScope.
func (d *Dirs) Keep(owner Owner) (*Dir, error) {
	d.mu.Lock()
	dir := d.kept[owner]
	if dir == nil {
		dir = &Dir{}
		if d.kept == nil {
			d.kept = make(map[Owner]*Dir)
		}
		d.kept[owner] = dir
	}
	dir.users++
	d.mu.Unlock()
	return d.ready(dir)
}

// ready returns dir once it is there. One that can't be made is forgotten.
func (d *Dirs) ready(dir *Dir) (*Dir, error) {
	dir.make.Do(func() { dir.path, dir.err = d.mkdir() })
	if dir.err == nil {
		return dir, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for owner, kept := range d.kept {
		if kept == dir {
			delete(d.kept, owner)
		}
	}
	return nil, dir.err
}

func (d *Dirs) mkdir() (path string, err error) {
	d.begin.Do(func() {
		if d.tenure, d.beginErr = tenure.Begin(d.Base, d.Pool); d.beginErr == nil {
			d.work.Go(d.sweep)
		}
	})
	if d.beginErr != nil {
		return "", d.beginErr
	}
	d.mu.Lock()
	d.made++
	n := d.made
	d.mu.Unlock()
	path = filepath.Join(d.tenure.Dir(), strconv.Itoa(n))
	return path, os.Mkdir(path, 0o700)
}

// sweep removes what pools have left that are gone.
func (d *Dirs) sweep() {
	for _, gone := range tenure.Ended(d.Base) {
		d.mu.Lock()
		ended := d.ended
		d.mu.Unlock()
		if ended {
			gone.Leave()
		} else {
			_ = gone.End() // what can't be removed is tried by the next pool too
		}
	}
}

// Leave ends one use of a folder, and removes it if it was the last one of a folder that
// isn't kept. Nil is no folder.
func (d *Dirs) Leave(dir *Dir) error {
	if dir == nil {
		return nil
	}
	d.mu.Lock()
	dir.users--
	remove := dir.users == 0 && dir.over
	d.mu.Unlock()
	if !remove {
		return nil
	}
	return tenure.Remove(dir.path)
}

// EndScope gives up the folders that are kept for a scope. Those in use go with their
// last use, the others in the background.
func (d *Dirs) EndScope(scope string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for owner, dir := range d.kept {
		if owner.Scope != scope {
			continue
		}
		delete(d.kept, owner)
		dir.over = true
		if dir.users == 0 && !d.ended {
			d.work.Go(func() { _ = tenure.Remove(dir.path) }) // End tries it again
		}
	}
}

// End removes what there still is, and returns the folder that it can't remove and why.
// No folder may be in use.
func (d *Dirs) End() (left string, err error) {
	d.mu.Lock()
	first := !d.ended
	d.ended, d.kept = true, nil
	d.mu.Unlock()
	d.begin.Do(func() {})
	d.work.Wait()
	if d.tenure == nil || !first {
		return "", nil
	}
	return d.tenure.Dir(), d.tenure.End()
}

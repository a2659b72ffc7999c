//go:build unix

package proc

import "os"

// pipes are the three pipes of one child: stdin, stdout, stderr.
type pipes struct {
	host  [3]*os.File // non-blocking, in the netpoller
	child [3]*os.File
}

func (ps *pipes) open() error {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			ps.closeChild()
			ps.closeHost()
			return err
		}
		if i == 0 {
			ps.child[i], ps.host[i] = r, w
		} else {
			ps.host[i], ps.child[i] = r, w
		}
	}
	return nil
}

func (ps *pipes) closeChild() { closeFiles(ps.child[:]) }
func (ps *pipes) closeHost()  { closeFiles(ps.host[:]) }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

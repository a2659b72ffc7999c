package proc

import "os"

// pipes are the three pipes of one child: stdin, stdout, stderr.
type pipes struct {
	host  [3]*os.File // non-blocking, so that deadlines work
	child [3]*os.File
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

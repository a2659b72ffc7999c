//go:build unix && !linux

package proc

import "os"

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

//go:build !linux

package sandbox

import (
	"errors"
	"os/exec"

	"github.com/mcppool/mcppool"
)

var errOther = &Error{Reason: "there are boxes on Linux alone", Err: errors.ErrUnsupported}

// Available reports why servers can't be boxed here; nil if they can.
func Available() error { return errOther }

// Bubblewrap returns a Command that boxes what is started. Here it fails.
func Bubblewrap(Rules) Command {
	return func(mcppool.Origin, mcppool.Server, *exec.Cmd) error { return errOther }
}

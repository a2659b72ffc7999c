// Package sandbox starts the servers of a pool in boxes: with a view of the machine that
// holds the system's programs, read-only, and what was named, and nothing else. It needs
// Linux and bubblewrap (bwrap).
//
//	pool, err := mcppool.New(&mcppool.Options{
//		Command: sandbox.Bubblewrap(sandbox.Rules{Write: []string{"/srv/projects/a"}}),
//	})
//
// Whoever has rules for each server calls the funcs that Bubblewrap returns from a
// Command of its own.
//
// # What a boxed server has
//
//   - The system's programs and libraries, and of /etc what programs need to find names,
//     certificates, fonts and the time, read-only; the program that was started.
//   - /proc with its own processes alone, a /dev of its own without devices that matter,
//     an empty home and an empty /tmp, which go with it.
//   - The session's private folder (see [mcppool.Server] and its PrivateDir).
//   - What the Rules name.
//   - No network, not even the host's loopback, unless the Rules say so; then all that
//     the host reaches, its own loopback included.
//   - The environment that it has without a box.
//   - No capability, and no user namespace to get one in.
//
// The box is a pid namespace. When its first process ends, the kernel ends all others in
// it: daemons that left their session, and also when the host is killed.
//
// # What it doesn't bound
//
// The kernel's own faults, the processor and the memory, but for Limits and Cgroup; what
// the server does over the network, if it has one.
package sandbox

import (
	"fmt"
	"os/exec"
	"strconv"

	"github.com/mcppool/mcppool"
)

// Command is a value of [mcppool.Options.Command].
type Command = func(from mcppool.Origin, srv mcppool.Server, cmd *exec.Cmd) error

// Rules say what a boxed server has of the machine besides the system. Paths are
// absolute, and have in the box the names that they have outside.
type Rules struct {
	Read  []string // folders and files that it may read
	Write []string // folders and files that it may change
	// Network lets it use the host's network, all of it.
	Network bool
	Limits  Limits
	Cgroup  Cgroup
}

// Cgroup bounds what all processes of a box may take together. Each box has a cgroup of
// its own, which is removed by a later start once the box has ended. Zero is no bound.
type Cgroup struct {
	// Parent is the folder of a cgroup of version 2, below which those of the boxes are
	// made. It must be this user's, have the controllers, and have no processes itself:
	// the host runs in another one, such as a child of it. Of systemd it is had with
	// Delegate=yes and DelegateSubgroup=host. Empty means that boxes have none.
	Parent    string
	Memory    int64   // bytes; the kernel ends a process of the box that needs more
	Processes int64   // and threads
	CPUs      float64 // processors' worth of time: 0.5 is half of one
}

// Limits bound what each process of a box may take, as setrlimit(2) has it; zero is the
// host's own limit. [Cgroup] bounds the sum.
type Limits struct {
	AddressSpace int64 // bytes of address space; programs of V8 and Go reserve far more than they use
	FileSize     int64 // bytes of the largest file that it may write
	OpenFiles    int64
	// Processes is how many processes and threads the box's user may have in it. It
	// doesn't hold for boxes that root starts.
	Processes  int64
	CPUSeconds int64 // of each process, which is then killed
}

// Error says why a server can't be boxed. Where there are no boxes at all, on systems
// other than Linux, without bubblewrap, or where the kernel or the administrator denies
// user namespaces, it is an [errors.ErrUnsupported].
type Error struct {
	Reason string
	Err    error // the cause; nil for none
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "sandbox: " + e.Reason
	}
	return fmt.Sprintf("sandbox: %s: %v", e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// args returns the command that sets l, as far as the program to run.
func (l Limits) args() []string {
	var args []string
	for _, limit := range [...]struct {
		flag  string
		value int64
	}{
		{"--as=", l.AddressSpace},
		{"--fsize=", l.FileSize},
		{"--nofile=", l.OpenFiles},
		{"--nproc=", l.Processes},
		{"--cpu=", l.CPUSeconds},
	} {
		if limit.value > 0 {
			args = append(args, limit.flag+strconv.FormatInt(limit.value, 10))
		}
	}
	return args
}

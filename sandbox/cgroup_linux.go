package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupMagic  = 0x63677270 // CGROUP2_SUPER_MAGIC of statfs(2)
	cgroupPrefix = "mcppool-"
	// cgroupAge is how long an empty cgroup is left alone, whose first process may be
	// about to join.
	cgroupAge = time.Minute
	cpuPeriod = 100_000 // microseconds, the kernel's default
)

// joins is what runs before a box: it joins the cgroup that is named first.
const joins = `echo 0 > "$0/cgroup.procs" && exec "$@"`

// settings are the files of a cgroup that are written, by controller.
func (g *Cgroup) settings() map[string][2]string {
	set := make(map[string][2]string)
	if g.Memory > 0 {
		set["memory"] = [2]string{"memory.max", strconv.FormatInt(g.Memory, 10)}
	}
	if g.Processes > 0 {
		set["pids"] = [2]string{"pids.max", strconv.FormatInt(g.Processes, 10)}
	}
	if g.CPUs > 0 {
		set["cpu"] = [2]string{"cpu.max", fmt.Sprintf("%d %d", int64(g.CPUs*cpuPeriod), cpuPeriod)}
	}
	return set
}

// args makes a cgroup and returns the command that joins it, as far as the program to run.
func (g *Cgroup) args() ([]string, error) {
	if g.Parent == "" {
		return nil, nil
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(g.Parent, &fs); err != nil {
		return nil, &Error{Reason: "Cgroup.Parent can't be read", Err: err}
	}
	if fs.Type != cgroupMagic {
		return nil, &Error{Reason: "Cgroup.Parent is no cgroup of version 2", Err: errors.ErrUnsupported}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, &Error{Reason: "Cgroup needs the program sh", Err: errors.ErrUnsupported}
	}
	g.sweep()
	if err := g.enable(); err != nil {
		return nil, err
	}
	dir := filepath.Join(g.Parent, cgroupPrefix+strings.ToLower(rand.Text()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, &Error{Reason: "Cgroup.Parent isn't this user's to divide", Err: err}
	}
	for _, set := range g.settings() {
		if err := os.WriteFile(filepath.Join(dir, set[0]), []byte(set[1]), 0o644); err != nil {
			_ = os.Remove(dir)
			return nil, &Error{Reason: "the kernel refuses a limit of the Cgroup", Err: err}
		}
	}
	return []string{sh, "-c", joins, dir}, nil
}

// enable has the children of Parent have the controllers that are needed.
func (g *Cgroup) enable() error {
	there, err := os.ReadFile(filepath.Join(g.Parent, "cgroup.controllers"))
	if err != nil {
		return &Error{Reason: "Cgroup.Parent can't be read", Err: err}
	}
	control := filepath.Join(g.Parent, "cgroup.subtree_control")
	for name := range g.settings() {
		if !slices.Contains(strings.Fields(string(there)), name) {
			return &Error{Reason: "Cgroup.Parent has no controller " + name + ": it has to be delegated", Err: errors.ErrUnsupported}
		}
		if err := os.WriteFile(control, []byte("+"+name), 0o644); err != nil {
			return &Error{Reason: "Cgroup.Parent can't hand on its controller " + name + ", as when it has processes itself", Err: err}
		}
	}
	return nil
}

// sweep removes the cgroups of boxes that have ended. One that has a process can't be
// removed.
func (g *Cgroup) sweep() {
	all, _ := filepath.Glob(filepath.Join(g.Parent, cgroupPrefix+"*"))
	for _, dir := range all {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > cgroupAge {
			_ = os.Remove(dir)
		}
	}
}

//go:build linux

package interop_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

// This process adopts what its servers leave behind, so that nothing of it is missed.
func TestMain(m *testing.M) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "can't become the subreaper:", errno)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// process is what /proc says of a process.
type process struct {
	pid, parent int
	name, state string
}

func processes(t testing.TB) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		text := string(data)
		begin, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		fields := strings.Fields(text[end+1:])
		parent, err := strconv.Atoi(fields[1])
		require.NoError(t, err)
		all = append(all, process{pid: pid, parent: parent, name: text[begin+1 : end], state: fields[0]})
	}
	return all
}

// tree is a process with all that descend from it, itself first.
func tree(t testing.TB, root int) []int {
	t.Helper()
	all := processes(t)
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		for _, p := range all {
			if p.parent == pids[i] {
				pids = append(pids, p.pid)
			}
		}
	}
	return pids
}

// freeze stops a process and all that descend from it, so that whatever it is asked next
// takes for ever; the func lets them go on.
func freeze(t testing.TB, root int) (thaw func()) {
	t.Helper()
	pids := tree(t, root)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // one that has ended meanwhile is as good
	}
	eventually(t, "everything stands still", func() bool {
		return !slices.ContainsFunc(pids, runs)
	})
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// runs reports whether any thread of a process isn't stopped. The signal takes a while.
func runs(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		panic(err) // of a bad pattern
	}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended meanwhile
		}
		state := string(bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])[0])
		if state != "T" && state != "Z" {
			return true
		}
	}
	return false
}

// requireNothingLeft fails if there is a child of this process that lives, and takes those that
// don't. What is left is killed, so that it doesn't fail the next check as well.
func requireNothingLeft(t testing.TB) {
	t.Helper()
	var left []string
	for _, p := range processes(t) {
		switch {
		case p.parent != os.Getpid():
		case p.state == "Z":
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		default:
			left = append(left, fmt.Sprintf("%d %s (%s)", p.pid, p.name, p.state))
			for _, pid := range tree(t, p.pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	require.Empty(t, left, "processes that are left")
}

// eventually waits for something that other processes do.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 20*time.Second, 10*time.Millisecond, what)
}

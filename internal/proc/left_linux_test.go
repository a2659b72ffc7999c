package proc_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// idEnv marks what a test starts, so that it can look for what it left.
const idEnv = "PROC_TEST_ID"

// leavesNothing fails the test if, at its end, a process, a zombie, a file
// descriptor or a goroutine is left that wasn't there before. It returns the
// environment entry that marks the test's processes.
func leavesNothing(t *testing.T) (mark string) {
	t.Helper()
	mark = idEnv + "=" + rand.Text()
	fds, current := openFds(t), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		require.Empty(t, marked(mark), "processes left")
		require.Empty(t, childrenOf(os.Getpid()), "children left")
		goleak.VerifyNone(t, current)
		require.Equal(t, fds, openFds(t), "file descriptors left")
	})
	return mark
}

// openFds lists the open file descriptors but for those of the runtime's own,
// which it opens once and keeps.
func openFds(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var fds []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.Contains(target, "eventpoll") || strings.Contains(target, "eventfd") {
			continue
		}
		fds = append(fds, e.Name()+" "+target)
	}
	return fds
}

func threads(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(entries)
}

// marked lists the processes with mark in their environment.
func marked(mark string) (found []int) {
	for _, pid := range allPids() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(e []byte) bool { return string(e) == mark }) {
			found = append(found, pid)
		}
	}
	return found
}

// childrenOf lists the children of a process, zombies included.
func childrenOf(parent int) (found []string) {
	for _, pid := range allPids() {
		if f := statFields(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			found = append(found, fmt.Sprintf("%d %s", pid, f[0]))
		}
	}
	return found
}

// alive reports whether pid is a process, and no zombie.
func alive(pid int) bool {
	f := statFields(pid)
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// statFields returns what /proc/<pid>/stat says after the program's name.
func statFields(pid int) []string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

func allPids() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually polls until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !cond(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), what)
	}
}

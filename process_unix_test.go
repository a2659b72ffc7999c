//go:build unix

package mcppool_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func processExists(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

func kill(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// children are the processes whose parent is this one, where /proc says so.
func children(t testing.TB) []int {
	t.Helper()
	self, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc here")
	}
	var all []int
	for _, task := range self {
		data, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for f := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

func TestNoProcessIsLeftByATraceThatPanics(t *testing.T) {
	p := realPool(t, &mcppool.Options{Trace: &mcppool.Trace{
		ProcessStarted: func(context.Context, mcppool.ProcessStartedInfo) { panic("oops") },
	}})
	_, err := p.CallTool(t.Context(), real(t, "state"), mcppool.Call{Tool: "pid", Scope: "s"})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.Empty(t, children(t))
}

package proc_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRSSIsThatOfTheWholeTreeUntilItsEnd(t *testing.T) {
	p := start(t, markedConfig(t, "host"))
	child := grandchildOf(t, p)
	drain(p)
	rss, ok := p.RSS()
	require.True(t, ok)
	// Neither stays the same to the page.
	require.InEpsilon(t, residentOf(t, p.Pid())+residentOf(t, child), rss, 0.3)
	require.Greater(t, rss, residentOf(t, p.Pid()))

	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	waitFor(t, "exit", p.Exited())
	_, ok = p.RSS()
	require.False(t, ok)
	waitFor(t, "Done", p.Done())
}

// residentOf is the kernel's VmRSS of a process, in bytes.
func residentOf(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(data), "VmRSS:")
	require.True(t, ok)
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kb << 10
}

package proc_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/proc"
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
	diesWithItsHost(t, child)
}

// diesWithItsHost waits for the end of a child of a host that was killed.
func diesWithItsHost(t *testing.T, child int) {
	t.Helper()
	eventually(t, "the child dies", func() bool { return !alive(child) })
}

func TestRSSOfManyTreesIsThatOfEachFromOneWalk(t *testing.T) {
	cfg := markedConfig(t, "host")
	var all []*proc.Process
	var children []int
	var want []int64
	for range 3 {
		p := start(t, cfg)
		child := grandchildOf(t, p)
		drain(p)
		all, children = append(all, p), append(children, child)
		want = append(want, residentOf(t, p.Pid())+residentOf(t, child))
	}
	ended := start(t, selfConfig(t, "exit", "0"))
	drain(ended)
	waitFor(t, "Done", ended.Done())

	release := proc.HoldSweeps()
	got := make(chan []int64)
	go func() { got <- proc.RSSOf(append(all, ended)...) }()
	eventually(t, "a walk", func() bool { return proc.SweepsWaiting() > 0 })
	require.Equal(t, 4, release(), "one walk for all")
	rss := <-got
	require.InDeltaSlice(t, append(want, 0), rss, 0.3*float64(want[0]))
	require.Zero(t, rss[3])
	require.Empty(t, proc.RSSOf())
	for i, p := range all {
		require.NoError(t, p.Stop(0))
		diesWithItsHost(t, children[i])
	}
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

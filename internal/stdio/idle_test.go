package stdio_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

func threads() int {
	entries, _ := os.ReadDir("/proc/self/task")
	return len(entries)
}

// memory is in bytes; a difference is below zero when what earlier tests left goes.
func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// An idle session, one that has carried a megabyte included, costs the host
// little: a host has many of them.
func TestAnIdleConnectionCostsLittle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what it costs elsewhere is another matter")
	}
	const sessions = 40
	leaves := leavesNothing(t)
	cfg := serverConfig(t, "fast")
	first := open(t, cfg) // with what is there once for all, the spare buffer of large results included
	mustCall(t, first, "echo", fmt.Sprintf(`{"n":%d}`, 1<<20))
	mustCall(t, first, "echo", `{}`)
	files, goroutines, memoryBefore, threadsBefore := len(descriptors(t)), runtime.NumGoroutine(), memory(), threads()
	conns := make([]*stdio.Conn, sessions)
	for i := range conns {
		conns[i] = open(t, cfg)
		mustCall(t, conns[i], "echo", fmt.Sprintf(`{"n":%d}`, 1<<20))
		mustCall(t, conns[i], "echo", `{}`)
	}
	perSession := (memory() - memoryBefore) / sessions
	t.Logf("%.0f bytes, %d goroutines, %d descriptors, %d threads in all", perSession,
		(runtime.NumGoroutine()-goroutines)/sessions, (len(descriptors(t))-files)/sessions, threads()-threadsBefore)
	require.LessOrEqual(t, len(descriptors(t))-files, 4*sessions)
	require.LessOrEqual(t, runtime.NumGoroutine()-goroutines, idleGoroutines*sessions)
	require.Less(t, threads()-threadsBefore, sessions/4)
	if !raceEnabled {
		require.Less(t, perSession, 30e3)
	}
	for _, c := range append(conns, first) {
		require.NoError(t, c.Close())
	}
	leaves()
}

// idleGoroutines are proc's and the reader.
const idleGoroutines = 2

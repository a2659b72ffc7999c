package mcppool_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func processExists(pid int) bool {
	const stillActive = 259 // STILL_ACTIVE
	h, err := syscall.OpenProcess(syscall.PROCESS_QUERY_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer syscall.CloseHandle(h)
	var code uint32
	return syscall.GetExitCodeProcess(h, &code) == nil && code == stillActive
}

func kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Release())
}

func children(t testing.TB) []int {
	t.Helper()
	t.Skip("no /proc here")
	return nil
}

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATreeHasTheProcessItsDescendantsAndNobodyElse(t *testing.T) {
	shell := exec.Command("sh", "-c", "sleep 300 & echo $!; wait")
	stdout, err := shell.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	sleeper, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	orphan, err := os.FindProcess(sleeper)
	require.NoError(t, err)
	t.Cleanup(func() {
		shell.Process.Kill()
		orphan.Kill()
	})

	tree := treeOf(shell.Process.Pid)
	var pids []int
	for _, p := range tree {
		pids = append(pids, p.pid)
		require.True(t, p.lives())
	}
	require.ElementsMatch(t, []int{shell.Process.Pid, sleeper}, pids)
	for _, p := range treeOf(os.Getpid()) {
		if p.pid == os.Getpid() {
			require.Greater(t, p.resident, int64(1<<20))
			pids = append(pids, p.pid)
		}
	}
	require.Contains(t, pids, os.Getpid())

	// Another process of the same pid is none of it.
	other := tree[0]
	other.begun += "0"
	require.False(t, other.lives())

	require.NoError(t, shell.Process.Kill())
	require.NoError(t, orphan.Kill())
	require.Error(t, shell.Wait())
	for _, p := range tree {
		if p.pid == shell.Process.Pid {
			require.False(t, p.lives())
		}
	}
}

package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/sandbox"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" || len(os.Args) > 1 && (os.Args[1] == "hold" || os.Args[1] == "left") {
		if run(os.Args[1:]) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestEveryWayIsClosedAndNothingIsLeft(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skip(err)
	}
	var out bytes.Buffer
	err := tour(&out, t.TempDir())
	t.Log("\n" + out.String())
	require.NoError(t, err)
	require.Contains(t, out.String(), "9 processes, each in a box.")
	require.NotContains(t, out.String(), "OPEN")
	require.Contains(t, out.String(), "The next pool on the machine: 0 processes and 0 folders are there.")
}

// Without boxes the same ways are open: the tour looks where it says that it looks.
func TestTheTourFindsAWayThatIsOpen(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skip(err)
	}
	h, err := open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, h.pool.Close())
	h.pool = unboxed(t, h.dir)
	home := t.TempDir()
	require.NoError(t, os.WriteFile(home+"/id_ed25519", []byte(secret), 0o600))
	path, err := h.call("alice", "filesystem", "write", map[string]any{"name": "diary", "text": diary})
	require.NoError(t, err)
	openWays := map[string]bool{}
	for _, w := range ways(h, path, home, "127.0.0.1:1") {
		if w.to == "kill the host" || w.to == "find anybody's folder" || w.to == "change the system" || w.to == "mount something" {
			continue
		}
		text, err := w.try()
		openWays[w.to] = err == nil && w.gotIt(text)
	}
	require.True(t, openWays["read Alice's diary"])
	require.True(t, openWays["write into Alice's folder"])
	require.True(t, openWays["read the host's key"])
	require.True(t, openWays["see the host's and the others' environment"])
	require.True(t, openWays["see the host's and the others' processes"])
	require.True(t, openWays["write a file of 2 MB, where 1 MB is allowed"])
	require.False(t, openWays["recall what Alice's server knows"], "that takes no box")
}

// unboxed is a pool of the same servers without boxes.
func unboxed(t *testing.T, dir string) *mcppool.Pool {
	t.Helper()
	p, err := mcppool.New(&mcppool.Options{ScratchDir: dir + "/scratch"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

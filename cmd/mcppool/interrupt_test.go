package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onWrite is a writer that calls a func with each write.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestAnInterruptEndsAllServersAndSaysWhatIsKnown(t *testing.T) {
	file := cursorFile(
		t,
		named{"fine", hostileEntry()},
		named{"hangs", hostileEntry("stopreading=0")},
		named{"later", hostileEntry("stopreading=0")},
	)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout bytes.Buffer
	begun := time.Now()
	// The first server's line comes while the second one starts.
	status := run(ctx, []string{"check", "-parallel", "1", "-json", file}, &stdout, onWrite(interrupt))
	require.Equal(t, statusFailed, status)
	require.Less(t, time.Since(begun), 40*time.Second, "nothing was waited for")
	require.Contains(t, stdout.String(), `"status": "ok"`)
	require.Equal(t, 2, bytes.Count(stdout.Bytes(), []byte(`"status": "interrupted"`)))
	for _, p := range treeOf(os.Getpid()) {
		require.Equal(t, os.Getpid(), p.pid, "a server is left")
	}
}

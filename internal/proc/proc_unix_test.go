//go:build unix

package proc_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// detached has a process leave its parent's group and session.
var detached = &syscall.SysProcAttr{Setsid: true}

// job has a process leave its parent's group.
var job = &syscall.SysProcAttr{Setpgid: true}

func TestChildThatIgnoresEOFGetsSIGTERM(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-eof"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(400 * time.Millisecond)
	require.Equal(t, "exit status 7", p.Exit().String())
}

func TestChildThatIgnoresSIGTERMIsKilled(t *testing.T) {
	p := start(t, selfConfig(t, "ignore-all"))
	require.Equal(t, "ready\n", readLine(t, p))
	drain(p)
	p.Stop(400 * time.Millisecond)
	require.Equal(t, "signal: killed", p.Exit().String())
}

// requireSigterm skips the test where there are no signals.
func requireSigterm(testing.TB) {}

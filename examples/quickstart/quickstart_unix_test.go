//go:build unix

package main

import (
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTourLeavesNoChildProcessNotEvenAZombie(t *testing.T) {
	require.NoError(t, tour(io.Discard))
	_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD)
}

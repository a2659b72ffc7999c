package mcppooltest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppooltest"
)

// The chat backend of the package's example, once with a server that hangs, in a bubble,
// and once with real processes.

func TestChatWhoseServerHangsIsToldAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{mcppooltest.New(t, keeper(), nil), mcppool.Server{Name: "notes", Command: "notes-server"}}
		begun := time.Now()
		require.Equal(t, "504 that took too long", b.post("anna", "hang"))
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Equal(t, "200 rope", b.post("bert", "rope"), "another chat doesn't notice")
	})
}

func TestChatWithRealProcesses(t *testing.T) {
	mcppooltest.NoLeaks(t)
	b := &backend{realPool(t, nil), mcppooltest.Server(t)}
	require.Equal(t, "200 milk", b.post("anna", "milk"))
	require.Equal(t, "200 rope", b.post("bert", "rope"))
	require.Equal(t, "200 milk\neggs", b.post("anna", "eggs"))
	b.notes = mcppooltest.Server(t, "die=call", "ignoreterm", "setsid")
	require.Equal(t, "502 the notes of this chat are lost", b.post("anna", "bread"))
	b.notes = mcppooltest.Server(t, "die=start")
	require.Equal(t, "503 please try again", b.post("anna", "bread"))
}

package mcppool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestTheEndOfASessionSaysHowItsProcessEnded(t *testing.T) {
	closed := make(chan mcppool.SessionClosedInfo, 1)
	p := realPool(t, &mcppool.Options{Trace: &mcppool.Trace{
		SessionClosed: func(_ context.Context, c mcppool.SessionClosedInfo) { closed <- c },
	}})
	srv := real(t, "state")
	require.Equal(t, "[x]", say(t, p, srv, "A", "note", map[string]any{"text": "x"}))
	p.CloseServer(srv)
	c := <-closed
	require.Equal(t, mcppool.ReasonServerClosed, c.Reason)
	require.Equal(t, "exit status 0", c.Exit)
	require.NoError(t, c.Err)
	require.Positive(t, c.Took)
	require.Greater(t, c.Lived, c.Took)
}

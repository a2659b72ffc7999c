//go:build unix

package stdio_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

func TestAStoppedServerRecoversAndTheHalfWrittenMessageIsWhole(t *testing.T) {
	c := start(t, serverConfig(t))
	mustCall(t, c, "echo", `{}`)
	require.NoError(t, syscall.Kill(c.Pid(), syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	big := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	var err error
	within(t, 200*time.Millisecond+soon, func() { _, err = call(ctx, c, "echo", big) })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var not *stdio.NotSentError
	require.NotErrorAs(t, err, &not, "a part was sent")

	small, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	within(t, 100*time.Millisecond+soon, func() { _, err = call(small, c, "count", `{}`) })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorAs(t, err, &not, "it was behind the big one")

	require.NoError(t, syscall.Kill(c.Pid(), syscall.SIGCONT))
	require.Equal(t, "1", mustCall(t, c, "count", `{}`))
	// The answer to the big one may come before or after.
	require.Eventually(t, func() bool { return c.Stats().Late == 1 }, 2*time.Second, time.Millisecond)
	require.EqualValues(t, 1, c.Stats().Abandoned)
}

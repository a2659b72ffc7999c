package stdio_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

// unread returns how many bytes are in a pipe.
func unread(t testing.TB, fd uintptr) int {
	t.Helper()
	const fionread = 0x541b
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, fionread, uintptr(unsafe.Pointer(&n)))
	require.Zero(t, errno)
	return int(n)
}

func TestAnswersThatAreInThePipeWhenTheLossIsSeenAreDelivered(t *testing.T) {
	c := start(t, serverConfig(t))
	mustCall(t, c, "echo", `{}`)
	got := make(chan error, 2)
	for _, args := range []string{`{"ms":200}`, `{"ms":300}`} {
		go func() {
			_, err := call(t.Context(), c, "sleep", args)
			got <- err
		}()
	}
	require.Eventually(t, func() bool { return stdio.Pending(c) == 2 && !stdio.Writing(c) }, time.Second, time.Millisecond)
	release := stdio.HoldReader(c)
	defer release()
	before := stdio.BytesIn(c)
	// The first answer is with the reader, the second is in the pipe.
	require.Eventually(t, func() bool {
		return stdio.BytesIn(c) > before && unread(t, stdio.Stdout(c)) > 0
	}, 2*time.Second, time.Millisecond)
	stdio.WakeReader(c)
	release()
	require.NoError(t, <-got)
	require.NoError(t, <-got)
	<-c.Done()
}

func TestWhatComesWhenALossIsKnownIsNotSent(t *testing.T) {
	c := start(t, serverConfig(t, "closeout"))
	go func() { _, _ = call(t.Context(), c, "echo", `{}`) }()
	require.Eventually(t, func() bool { return stdio.Losing(c) }, time.Second, time.Millisecond)
	_, err := call(t.Context(), c, "echo", `{}`)
	var not *stdio.NotSentError
	require.ErrorAs(t, err, &not)
	dead(t, err, stdio.ErrEOF)
}

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

func TestCloseEndsAStoppedServerWithinItsTimeout(t *testing.T) {
	for _, traits := range []string{"", "ignoreterm", "wrapper,ignoreterm"} {
		t.Run(traits, func(t *testing.T) {
			cfg := serverConfig(t, traits)
			cfg.CloseTimeout = 500 * time.Millisecond
			c := start(t, cfg)
			mustCall(t, c, "echo", `{}`)
			require.NoError(t, syscall.Kill(-c.Pid(), syscall.SIGSTOP))
			within(t, cfg.CloseTimeout+soon, func() { require.NoError(t, c.Close()) })
			require.Empty(t, family(t))
		})
	}
}

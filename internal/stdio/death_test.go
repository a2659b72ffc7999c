package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/rpc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// soon is a bound for what takes milliseconds, on a machine that others use.
const soon = 3 * time.Second

// dead checks that err is a lost connection with that reason.
func dead(t testing.TB, err, reason error) *stdio.DeadError {
	t.Helper()
	var d *stdio.DeadError
	require.ErrorAs(t, err, &d)
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, rpc.ErrLost)
	return d
}

func initialize(ctx context.Context, c *stdio.Conn) error {
	_, err := c.Request(ctx, "initialize", json.RawMessage(`{"protocolVersion":"2025-06-18"}`))
	if err == nil {
		err = c.Notify(ctx, "notifications/initialized", nil)
	}
	return err
}

func TestDeathBeforeDuringAndAfterTheHandshakeSaysWhy(t *testing.T) {
	for _, when := range []string{"start", "handshake"} {
		t.Run(when, func(t *testing.T) {
			c := start(t, serverConfig(t, "die="+when))
			var err error
			within(t, soon, func() { err = initialize(t.Context(), c) })
			d := dead(t, err, stdio.ErrExited)
			require.True(t, d.Exited)
			require.Equal(t, 3, d.Exit.Code)
			require.Equal(t, "fatal: no database\n", d.StderrTail)
			require.Equal(t, "server exited: exit status 3", d.Error())
			require.Equal(t, d, c.Err())
		})
	}
	t.Run("initialized", func(t *testing.T) {
		c := start(t, serverConfig(t, "die=initialized"))
		require.NoError(t, initialize(t.Context(), c))
		within(t, soon, func() { <-c.Done() })
		d := dead(t, c.Err(), stdio.ErrExited)
		require.Equal(t, "fatal: no database\n", d.StderrTail)

		_, err := call(t.Context(), c, "echo", `{}`)
		var not *stdio.NotSentError
		require.ErrorAs(t, err, &not)
		dead(t, err, stdio.ErrExited)
	})
}

func TestDeathDuringACallFailsItAtOnce(t *testing.T) {
	c := start(t, serverConfig(t))
	var err error
	within(t, soon, func() { _, err = call(t.Context(), c, "die", `{}`) })
	d := dead(t, err, stdio.ErrExited)
	require.Equal(t, 3, d.Exit.Code)
	require.Equal(t, "fatal: no database\n", d.StderrTail)
	var not *stdio.NotSentError
	require.NotErrorAs(t, err, &not)
}

func TestDeathIsSeenAlthoughADaemonHoldsThePipes(t *testing.T) {
	c := start(t, serverConfig(t))
	var err error
	within(t, soon, func() { _, err = call(t.Context(), c, "daemon", `{}`) })
	d := dead(t, err, stdio.ErrExited)
	require.Equal(t, 3, d.Exit.Code)
	require.Contains(t, d.StderrTail, "fatal: no database")
}

func TestTheLastAnswerIsDelivered(t *testing.T) {
	for name, traits := range map[string][]string{"with newline": nil, "without newline": {"nonewline"}} {
		t.Run(name, func(t *testing.T) {
			c := start(t, serverConfig(t, traits...))
			require.Equal(t, "last", mustCall(t, c, "last", `{}`))
			<-c.Done()
			require.Equal(t, 0, dead(t, c.Err(), stdio.ErrExited).Exit.Code)
		})
		t.Run(name+" while a daemon holds the pipes", func(t *testing.T) {
			c := start(t, serverConfig(t, traits...))
			require.Equal(t, "last", mustCall(t, c, "lastdaemon", `{}`))
			<-c.Done()
			dead(t, c.Err(), stdio.ErrExited)
		})
	}
}

// The exit is often seen before the pipe is empty.
func TestALargeLastAnswerIsDeliveredWhileADaemonHoldsThePipes(t *testing.T) {
	for range 10 {
		c := start(t, serverConfig(t))
		require.Len(t, mustCall(t, c, "lastdaemon", `{"n":2000000}`), 2000004)
		require.NoError(t, c.Close())
	}
}

func TestAServerThatClosesItsStdoutIsLost(t *testing.T) {
	c := start(t, serverConfig(t, "closeout"))
	var err error
	within(t, time.Second, func() { _, err = call(t.Context(), c, "echo", `{}`) })
	dead(t, err, stdio.ErrEOF)
}

func TestAServerThatClosesItsStdinIsLostAtTheNextCall(t *testing.T) {
	c := start(t, serverConfig(t, "closein"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := call(ctx, c, "echo", `{}`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return c.StderrTail() == "stdin closed\n" }, 10*time.Second, time.Millisecond)
	within(t, time.Second, func() { _, err = call(t.Context(), c, "echo", `{}`) })
	dead(t, err, stdio.ErrBrokenPipe)
}

func TestAKilledWrapperIsADeathAndTheServerBehindItIsEnded(t *testing.T) {
	c := start(t, serverConfig(t, "wrapper", "ignoreeof", "ignoreterm"))
	pid, err := strconv.Atoi(mustCall(t, c, "pid", `{}`))
	require.NoError(t, err)
	require.NotEqual(t, c.Pid(), pid)
	p, err := os.FindProcess(c.Pid())
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Release())
	within(t, soon, func() { <-c.Done() })
	d := dead(t, c.Err(), stdio.ErrExited)
	require.False(t, d.Exit.Requested)
}

func TestCloseEndsEachKindOfServer(t *testing.T) {
	for _, tt := range []struct {
		traits []string
		limit  time.Duration
	}{
		{nil, soon},
		{[]string{"ignoreeof"}, 5 * time.Second},
		{[]string{"ignoreeof", "ignoreterm"}, 6 * time.Second},
		{[]string{"wrapper"}, soon},
		{[]string{"wrapper", "ignoreeof"}, 5 * time.Second},
		{[]string{"wrapper", "ignoreeof", "ignoreterm"}, 6 * time.Second},
		{[]string{"setsid"}, 5 * time.Second},
		{[]string{"slowexit=200ms"}, 4 * time.Second},
	} {
		t.Run(strings.Join(tt.traits, " "), func(t *testing.T) {
			c := start(t, serverConfig(t, tt.traits...))
			mustCall(t, c, "echo", `{}`)
			within(t, tt.limit, func() { require.NoError(t, c.Close()) })
			dead(t, c.Err(), stdio.ErrClosed)
		})
	}
}

func TestCloseDoesNotSignalAServerThatExitsSlowly(t *testing.T) {
	c := start(t, serverConfig(t, "slowexit=300ms"))
	mustCall(t, c, "echo", `{}`)
	require.NoError(t, c.Close())
	require.Equal(t, 0, stdio.ExitOf(c).Code, "%v", stdio.ExitOf(c))
}

func TestCloseFailsCallsAtOnceAndIsTheSameForAll(t *testing.T) {
	c := start(t, serverConfig(t, "silent", "slowexit=300ms"))
	failed := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), c, "echo", `{}`)
		failed <- err
	}()
	for stdio.Pending(c) == 0 {
		runtime.Gosched()
	}
	closed := make(chan error, 10)
	begin := time.Now()
	for range cap(closed) {
		go func() { closed <- c.Close() }()
	}
	dead(t, <-failed, stdio.ErrClosed)
	require.Less(t, time.Since(begin), 250*time.Millisecond)
	for range cap(closed) {
		require.NoError(t, <-closed)
	}
	_, err := call(t.Context(), c, "echo", `{}`)
	dead(t, err, stdio.ErrClosed)
}

func TestKillHasNoGrace(t *testing.T) {
	c := start(t, serverConfig(t, "ignoreeof", "ignoreterm"))
	mustCall(t, c, "echo", `{}`)
	within(t, soon, func() {
		c.Kill()
		<-c.Done()
		require.NoError(t, c.Close())
	})
	dead(t, c.Err(), stdio.ErrKilled)
}

func TestALineOverTheLimitLosesTheConnectionInBoundedMemory(t *testing.T) {
	cfg := serverConfig(t, "bigline=200000000")
	cfg.MaxMessageSize = 8 << 20
	c := start(t, cfg)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := call(t.Context(), c, "echo", `{}`)
	runtime.ReadMemStats(&after)
	dead(t, err, stdio.ErrTooLong)
	// The buffer doubles up to the limit, which comes to twice that, and then gets a
	// chunk more.
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3*cfg.MaxMessageSize+1<<20))
}

func TestAMessageOfTheLimitPasses(t *testing.T) {
	cfg := serverConfig(t)
	cfg.MaxMessageSize = 1 << 20
	c := start(t, cfg)
	require.Len(t, mustCall(t, c, "big", `{"n":1000000}`), 1000000)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := call(ctx, c, "big", `{"n":1100000}`)
	dead(t, err, stdio.ErrTooLong)
}

func TestStderrIsDrainedAndItsTailKept(t *testing.T) {
	cfg := serverConfig(t, "stderr=20000000")
	cfg.StderrTail = 1000
	c := start(t, cfg)
	require.Equal(t, "hello", mustCall(t, c, "echo", `{"text":"hello"}`))
	require.Eventually(t, func() bool { return strings.HasSuffix(c.StderrTail(), "end of flood\n") }, 2*time.Second, time.Millisecond)
	require.Len(t, c.StderrTail(), 1000)
}

func TestStderrLinesAreTold(t *testing.T) {
	lines := make(chan string, 10)
	cfg := serverConfig(t)
	cfg.OnStderr = func(line []byte) { lines <- string(line) }
	c := start(t, cfg)
	mustCall(t, c, "stderr", `{"text":"one\r\ntwo"}`)
	require.Equal(t, "one", <-lines)
	require.Equal(t, "two", <-lines)
}

func TestAHalfWrittenMessageThatMakesNoProgressLosesTheConnection(t *testing.T) {
	cfg := serverConfig(t, "stopreading=0")
	cfg.WriteStall = 300 * time.Millisecond
	c := start(t, cfg)
	big := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	var err error
	took := within(t, 300*time.Millisecond+soon, func() { _, err = call(t.Context(), c, "echo", big) })
	require.GreaterOrEqual(t, took, 300*time.Millisecond)
	dead(t, err, stdio.ErrStalled)
}

func TestAServerThatReadsNothingKeepsNoCallBeyondItsDeadline(t *testing.T) {
	cfg := serverConfig(t, "stopreading=0")
	cfg.WriteStall = 200 * time.Millisecond
	c := start(t, cfg)
	args := `{"text":"` + strings.Repeat("x", 2000) + `"}`
	const calls = 200
	ends := make(chan time.Duration, calls)
	sent := make(chan bool, calls)
	for range calls {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := call(ctx, c, "echo", args)
			ends <- time.Since(begin)
			var not *stdio.NotSentError
			sent <- !errors.As(err, &not)
		}()
	}
	reached := 0
	for range calls {
		require.Less(t, <-ends, 100*time.Millisecond+soon)
		if <-sent {
			reached++
		}
	}
	require.Less(t, reached, 40, "a pipe holds 64 KiB")
	// Nothing is half written: the server may take its time.
	select {
	case <-c.Done():
		t.Fatal(c.Err())
	case <-time.After(2 * cfg.WriteStall):
	}
}

func TestCancelledCallsAreToldToTheServerEvenIfCloseFollowsAtOnce(t *testing.T) {
	for range 20 {
		cfg := serverConfig(t, "silent")
		log := filepath.Join(t.TempDir(), "log")
		cfg.Proc.Env = append(cfg.Proc.Env, "MCPPOOLTEST_LOG="+log)
		c := start(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := call(ctx, c, "echo", `{}`)
		cancel()
		require.Equal(t, context.DeadlineExceeded, err)
		require.NoError(t, c.Close())
		got, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("notifications/cancelled %d\n", stdio.LastID(c)), string(got))
	}
}

func TestAHandshakeIsNotCancelled(t *testing.T) {
	c := start(t, serverConfig(t, "mute"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Request(ctx, "server/discover", json.RawMessage(`{}`))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, mustCall(t, c, "seen", `{}`))
}

func TestAStrictServerExitsAtAnUnknownMethodAndTheErrorSaysSo(t *testing.T) {
	c := start(t, serverConfig(t, "strict"))
	_, err := c.Request(t.Context(), "server/discover", nil)
	d := dead(t, err, stdio.ErrExited)
	require.Equal(t, 5, d.Exit.Code)
	require.Equal(t, "unknown method server/discover\n", d.StderrTail)
}

package mcpconn_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/rpc"
)

func TestProbeFindsLivingServersAlive(t *testing.T) {
	for name, cfg := range bothEras(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, dial(t, cfg).Probe(within(t, soon)))
		})
	}
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		require.NoError(t, dial(t, refuses(t, era)).Probe(within(t, soon)), "an error is an answer")
	}
}

func TestProbeOfAServerThatDoesNotAnswerEndsWithItsCtx(t *testing.T) {
	cfg := hostileServer(t, "stopreading=2") // initialize and initialized
	cfg.Era = rpc.Legacy
	c := dial(t, cfg)
	require.ErrorIs(t, c.Probe(within(t, 50*time.Millisecond)), context.DeadlineExceeded)
}

func TestProbeOfADeadServerSaysThatItIsLost(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		c := dial(t, full(t, era))
		kill(t, c)
		<-c.Done()
		require.ErrorIs(t, c.Probe(within(t, soon)), rpc.ErrLost)
		require.Equal(t, "signal: killed", c.Death().Exit)
	}
}

func TestServerOfUnknownEraIsFoundOutAndRemembered(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	for name, tc := range map[string]struct {
		cfg mcpconn.Config
		era rpc.Era
	}{
		"modern":             {full(t, rpc.Auto), rpc.Modern},
		"refuses, is legacy": {hostileServer(t), rpc.Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tc.cfg
			cfg.Eras = &mcpconn.Eras{}
			starts := 0
			cfg.OnStart = func(*mcpconn.Conn) { starts++ }
			for range 2 { // the second one isn't asked what it doesn't know
				c := dial(t, cfg)
				require.Equal(t, tc.era == rpc.Modern, mcp.IsModernProtocol(c.Info().ProtocolVersion))
				require.Equal(t, tc.era, cfg.Eras.Of(cfg.EraKey))
				require.NoError(t, c.Close())
			}
			require.Equal(t, 2, starts)
		})
	}
}

func TestServerThatIgnoresTheQuestionIsAskedTheOtherInTheSameProcess(t *testing.T) {
	restore := mcpconn.SetProbeTime(300 * time.Millisecond)
	cfg := hostileServer(t, "mute")
	cfg.Eras = &mcpconn.Eras{}
	starts := 0
	cfg.OnStart = func(*mcpconn.Conn) { starts++ }
	require.False(t, mcp.IsModernProtocol(dial(t, cfg).Info().ProtocolVersion))
	require.Equal(t, rpc.Legacy, cfg.Eras.Of(cfg.EraKey))
	require.Equal(t, 1, starts)
	restore()
	defer mcpconn.SetProbeTime(time.Minute)()
	begun := time.Now()
	dial(t, cfg)
	require.Less(t, time.Since(begun), 4*soon, "it is not asked again")
}

func TestServerOfUnknownEraIsAskedForHalfOfTheTimeThereIs(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg := hostileServer(t, "mute")
	begun := time.Now()
	cfg.Hurry = begun.Add(400 * time.Millisecond)
	dial(t, cfg)
	require.Less(t, time.Since(begun), 4*soon, "whoever asked is in a hurry")
	cfg.Hurry = time.Time{}
	c, err := mcpconn.Dial(within(t, soon), cfg)
	require.NoError(t, err, "half of the ctx is left for the legacy handshake")
	require.NoError(t, c.Close())
}

func TestEraIsForgottenWhenTheServerHasNoInitializeAnyMore(t *testing.T) {
	cfg := child(t, "MCPCONN_REFUSING=everything")
	cfg.Eras = &mcpconn.Eras{}
	cfg.Eras.Set(cfg.EraKey, rpc.Legacy)
	_, err := mcpconn.Dial(within(t, soon), cfg)
	var failed *rpc.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "connect", failed.Phase)
	var answer *rpc.Error
	require.ErrorAs(t, err, &answer)
	require.Equal(t, -32050, answer.Code)
	require.Equal(t, rpc.Auto, cfg.Eras.Of(cfg.EraKey))
}

func TestErasAreBounded(t *testing.T) {
	var eras mcpconn.Eras
	for i := range 5000 {
		eras.Set([16]byte{byte(i), byte(i >> 8)}, rpc.Modern)
	}
	require.Equal(t, mcpconn.MaxEras, eras.Len())
	require.Equal(t, rpc.Modern, eras.Of([16]byte{byte(4999 % 256), byte(4999 >> 8)}), "the newest is kept")
}

func TestHowAProcessIsPreparedAndEndedIsUpToTheConfig(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM")
	}
	for name, set := range map[string]func(*mcpconn.Config){
		"a short grace":          func(cfg *mcpconn.Config) { cfg.Grace = time.Millisecond },
		"SIGTERM before the end": func(cfg *mcpconn.Config) { cfg.TermFirst = func() bool { return true } },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hostileServer(t, "ignoreeof")
			cfg.Era, cfg.CloseTimeout = rpc.Legacy, time.Minute
			set(&cfg)
			prepared := 0
			cfg.Prepare = func(*exec.Cmd) error { prepared++; return nil }
			c, err := mcpconn.Dial(within(t, 4*soon), cfg)
			require.NoError(t, err)
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			select {
			case err := <-closed:
				require.NoError(t, err)
			case <-time.After(4 * soon):
				t.Errorf("it got half of a minute: %v", <-closed)
			}
			require.Equal(t, 1, prepared)
		})
	}
}

func TestPinnedEraIsNotNegotiated(t *testing.T) {
	cfg := hostileServer(t)
	cfg.Era = rpc.Modern
	_, err := mcpconn.Dial(within(t, soon), cfg)
	require.ErrorContains(t, err, "no modern revision")
	require.False(t, mcp.IsModernProtocol(dial(t, full(t, rpc.Legacy)).Info().ProtocolVersion))
}

func TestFailedStartSaysWhatFailedAndLeavesNothing(t *testing.T) {
	missing := child(t)
	missing.Command = "no-such-program"
	start := func(cfg mcpconn.Config) *rpc.StartError {
		_, err := mcpconn.Dial(within(t, soon), cfg)
		var failed *rpc.StartError
		require.ErrorAs(t, err, &failed)
		return failed
	}
	failed := start(missing)
	require.Equal(t, "start", failed.Phase)
	require.ErrorContains(t, failed, "no-such-program")

	failed = start(hostileServer(t, "die=handshake"))
	require.Equal(t, "connect", failed.Phase)
	require.Equal(t, "exit status 3", failed.Exit)
	require.Contains(t, failed.Stderr, "fatal: no database")
}

func TestDialThatIsGivenUpLeavesNothing(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Auto, rpc.Legacy} {
		cfg := hostileServer(t, "stopreading=0")
		cfg.Era = era
		_, err := mcpconn.Dial(within(t, 100*time.Millisecond), cfg)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestDirectoryMustBeThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for dir, reason := range map[string]string{
		"/no/such/dir": "doesn't exist", "no/such/dir": "doesn't exist", file: "isn't a directory",
	} {
		cfg := full(t, rpc.Auto)
		cfg.Dir = dir
		_, err := mcpconn.Dial(within(t, soon), cfg)
		var bad *rpc.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Dir", bad.Field)
		require.Contains(t, bad.Reason, reason)
	}
}

func TestCallsCarryTheirMetaAndTheProtocols(t *testing.T) {
	for _, era := range []rpc.Era{rpc.Legacy, rpc.Modern} {
		c := dial(t, full(t, era))
		meta := &mcp.Meta{AdditionalFields: map[string]any{mcp.MetaKeyLogLevel: "notice"}}
		res, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: "level", Args: json.RawMessage(`{}`), Meta: meta})
		require.NoError(t, err)
		require.Equal(t, "notice", res.Content[0].(mcp.TextContent).Text)

		meta.AdditionalFields["c"] = make(chan int)
		_, err = c.CallTool(within(t, soon), rpc.ToolCall{Tool: "level", Meta: meta})
		var bad *rpc.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Meta", bad.Field)
	}
}

func TestGateThatRefusesSendsNothing(t *testing.T) {
	c := dial(t, full(t, rpc.Auto))
	no := errors.New("no")
	_, err := c.CallTool(within(t, soon), rpc.ToolCall{Tool: "pid", Gate: func() error { return no }})
	var notSent *rpc.NotSentError
	require.ErrorAs(t, err, &notSent)
	require.ErrorIs(t, err, no)
}

func TestProgressReachesItsCallBeforeItReturns(t *testing.T) {
	c := dial(t, hostileServer(t))
	for range 3 {
		var seen []float64
		_, err := c.CallTool(within(t, soon), rpc.ToolCall{
			Tool: "notify", Args: json.RawMessage(`{"n":5}`),
			OnProgress: func(n mcp.ProgressNotification) { seen = append(seen, n.Params.Progress) },
		})
		require.NoError(t, err)
		require.Len(t, seen, 5)
		require.IsIncreasing(t, seen)
	}
}

func TestServerIsAnsweredByTheHandlers(t *testing.T) {
	cfg := hostileServer(t)
	cfg.Era = rpc.Legacy
	cfg.Handlers.Roots = func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///x"}}, nil }
	c := dial(t, cfg)
	require.Contains(t, say(t, c, "ask", `{"method":"roots/list"}`), "file:///x")
	require.Contains(t, say(t, c, "ask", `{"method":"sampling/createMessage"}`), "error", "there is no handler for it")
}

func TestTheCtxOfALegacyHandlerEndsWithTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	entered := make(chan struct{})
	cfg := hostileServer(t)
	cfg.Era = rpc.Legacy
	cfg.Handlers.Roots = func(ctx context.Context) ([]mcp.Root, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	c := dial(t, cfg)
	lost := make(chan error, 1)
	go func() {
		_, err := c.CallTool(within(t, 4*soon), rpc.ToolCall{Tool: "ask", Args: json.RawMessage(`{"method":"roots/list"}`)})
		lost <- err
	}()
	<-entered
	kill(t, c)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, <-lost, rpc.ErrLost)
}

func TestALossIsToldAndAnEndByTheHostIsNot(t *testing.T) {
	lost := make(chan struct{}, 2)
	cfg := full(t, rpc.Auto)
	cfg.OnLost = func() { lost <- struct{}{} }
	c := dial(t, cfg)
	kill(t, c)
	select {
	case <-lost:
	case <-time.After(soon):
		t.Fatal("not told")
	}
	require.EqualError(t, c.Err(), "server exited")

	require.NoError(t, dial(t, cfg).Close())
	require.Empty(t, lost)
}

func TestMemoryOfAChildIsKnown(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("no /proc here")
	}
	c := dial(t, full(t, rpc.Auto))
	rss, ok := c.RSS()
	require.True(t, ok)
	require.Greater(t, rss, int64(1<<20))
	require.NoError(t, c.Close())
	_, ok = c.RSS()
	require.False(t, ok)
}

func TestStderrOfALivingChildIsKnown(t *testing.T) {
	c := dial(t, hostileServer(t))
	say(t, c, "stderr", `{"text":"uh-oh"}`)
	require.Eventually(t, func() bool {
		return strings.Contains(c.Death().Stderr, "uh-oh")
	}, soon, time.Millisecond)
}

// BenchmarkCall is the hot path: one goroutine's calls of a server that is as
// fast as can be.
func BenchmarkCall(b *testing.B) {
	c := dial(b, hostileServer(b, "fast"))
	call := rpc.ToolCall{Tool: "echo", Args: json.RawMessage(`{}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.CallTool(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

package mcpconn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/mcpconn"
	"github.com/mcppool/mcppool/internal/rpc"
)

// questioned runs a server whose environment says what becomes of
// server/discover; it has initialize besides.
func questioned() bool {
	how := os.Getenv("MCPCONN_QUESTIONED")
	if how == "" {
		return false
	}
	switch how {
	case "exits before it reads":
		time.Sleep(200 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "Please set TOKEN")
		os.Exit(1)
	case "talks and exits":
		_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
		fmt.Println("usage: server --port")
		os.Exit(0)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for n := 0; ; n++ {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&req) != nil {
			return true
		}
		if line := strangeLines[how]; line != "" && n == 0 {
			fmt.Println(line)
			time.Sleep(1500 * time.Millisecond)
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": map[string]any{}}
		switch {
		case req.ID == nil:
			continue
		case how == "frames":
			body, _ := json.Marshal(answer)
			fmt.Printf("Content-Length: %d\r\n\r\n%s", len(body), body)
			continue
		case how == "indents":
			out.SetIndent("", "  ")
		case how == "answers 1":
			answer["id"] = 1
		case req.Method == "initialize" && how == "has no initialize":
			delete(answer, "result")
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		case req.Method == "initialize":
			answer["result"] = json.RawMessage(`{"protocolVersion":"2025-06-18","serverInfo":{"name":"q","version":"1"},"capabilities":{}}`)
		case req.Method != "server/discover":
		case how == "ignores it":
			continue
		case how == "crashes once" && crashed():
			os.Exit(7)
		case how == "crashes once", how == "has no initialize":
			answer["result"] = map[string]any{"supportedVersions": []string{mcp.LATEST_PROTOCOL_VERSION}}
		case how == "falls silent on it":
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = os.WriteFile(os.Getenv("MCPCONN_ENDED"), nil, 0o600)
			return true
		case how == "refuses it and exits":
			delete(answer, "result")
			answer["error"] = map[string]any{"code": -32600, "message": "expected initialize"}
			_ = out.Encode(answer)
			os.Exit(1)
		case how == "answers it late":
			time.Sleep(300 * time.Millisecond)
			answer["result"] = map[string]any{"supportedVersions": []string{mcp.LATEST_PROTOCOL_VERSION}}
		}
		_ = out.Encode(answer)
	}
}

// strangeLines are what servers print before they answer, late, as they should.
var strangeLines = map[string]string{
	"an old answer":      `{"jsonrpc":"2.0","id":1,"result":{}}`,
	"an indented answer": "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}",
	"a header":           "Content-Length: 12",
	"two old answers":    `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{}}`,
}

// crashed reports whether the server is to crash: the first time that it is asked.
func crashed() bool {
	f, err := os.OpenFile(os.Getenv("MCPCONN_CRASHED"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// asked is such a server, and what counts its starts.
func asked(t testing.TB, how string) (cfg mcpconn.Config, starts *int) {
	t.Helper()
	cfg = child(t, "MCPCONN_QUESTIONED="+how)
	cfg.Eras = &mcpconn.Eras{}
	starts = new(int)
	cfg.OnStart = func(*mcpconn.Conn) { *starts++ }
	return cfg, starts
}

func TestServerThatRefusesTheQuestionAndExitsIsStartedAgain(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg, starts := asked(t, "refuses it and exits")
	dial(t, cfg)
	require.Equal(t, 2, *starts)
	require.Equal(t, rpc.Legacy, cfg.Eras.Of(cfg.EraKey))
	dial(t, cfg)
	require.Equal(t, 3, *starts, "it isn't asked again")
}

func TestServerThatDiesOfTheQuestionIsAskedOnceMoreAfterAWhileAndThenNeverAgain(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg := hostileServer(t, "strict")
	cfg.Eras = &mcpconn.Eras{}
	starts := 0
	cfg.OnStart = func(*mcpconn.Conn) { starts++ }
	for i, want := range []int{2, 3, 4, 6, 7, 8} {
		if i == 3 || i == 5 {
			cfg.Eras.Age(cfg.EraKey)
		}
		require.Equal(t, "2025-06-18", dial(t, cfg).Info().ProtocolVersion)
		require.Equal(t, want, starts)
	}
}

func TestModernServerThatCrashesOnceAtItsStartIsModernAfterAWhile(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg, starts := asked(t, "crashes once")
	cfg.Env = append(cfg.Env, "MCPCONN_CRASHED="+filepath.Join(t.TempDir(), "crashed"))
	for _, want := range []int{2, 3} {
		require.False(t, mcp.IsModernProtocol(dial(t, cfg).Info().ProtocolVersion))
		require.Equal(t, want, *starts)
	}
	cfg.Eras.Age(cfg.EraKey)
	for range 2 {
		require.True(t, mcp.IsModernProtocol(dial(t, cfg).Info().ProtocolVersion))
	}
	require.Equal(t, 5, *starts)
}

func TestExitBeforeTheQuestionIsReadStartsNoSecondProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether it was read isn't known here")
	}
	cfg, starts := asked(t, "exits before it reads")
	_, err := mcpconn.Dial(within(t, 4*soon), cfg)
	var failed *rpc.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "exit status 1", failed.Exit)
	require.Contains(t, failed.Stderr, "Please set TOKEN")
	require.Equal(t, 1, *starts)
}

func TestWhereNothingIsKnownOfWhatWasReadASoonExitAloneStartsASecondProcess(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	for soonTime, want := range map[time.Duration]int{time.Millisecond: 1, time.Minute: 2} {
		restore := mcpconn.NotKnowingWhatIsUnread(soonTime)
		cfg, starts := asked(t, "exits before it reads")
		_, err := mcpconn.Dial(within(t, 4*soon), cfg)
		restore()
		var failed *rpc.StartError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "exit status 1", failed.Exit)
		require.Equal(t, want, *starts)
	}
}

func TestASlowStartIsWaitedForWhereNothingIsKnownOfWhatWasRead(t *testing.T) {
	defer mcpconn.SetProbeTime(20 * time.Millisecond)()
	defer mcpconn.NotKnowingWhatIsUnread(time.Minute)()
	cfg, starts := asked(t, "answers it late")
	for n := range 2 {
		dial(t, cfg)
		require.Equal(t, n+1, *starts)
	}
}

func TestForwarderInFrontOfASlowServerIsStartedOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	defer mcpconn.SetProbeTime(50 * time.Millisecond)()
	for era, cfg := range map[rpc.Era]mcpconn.Config{rpc.Modern: full(t, rpc.Auto), rpc.Legacy: hostileServer(t)} {
		server := cfg.Command
		cfg.Eras = &mcpconn.Eras{}
		cfg.Command, cfg.Args = "/bin/sh", []string{"-c", `/bin/cat | (/bin/sleep 0.5; exec "$0")`, server}
		starts := 0
		cfg.OnStart = func(*mcpconn.Conn) { starts++ }
		for n := range 3 {
			c := dial(t, cfg)
			require.Equal(t, n+1, starts)
			require.Equal(t, era == rpc.Modern, mcp.IsModernProtocol(c.Info().ProtocolVersion))
			require.Equal(t, era, cfg.Eras.Of(cfg.EraKey))
		}
	}
}

func TestServerThatBothQuestionsSilenceIsStartedAgainAndEndsByItself(t *testing.T) {
	defer mcpconn.SetProbeTime(50 * time.Millisecond)()
	ended := filepath.Join(t.TempDir(), "ended")
	cfg, starts := asked(t, "falls silent on it")
	cfg.Env = append(cfg.Env, "MCPCONN_ENDED="+ended)
	c, err := mcpconn.Dial(within(t, soon), cfg)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, 2, *starts)
	require.FileExists(t, ended, "it saw the end of its input")
	require.Equal(t, rpc.Legacy, cfg.Eras.Of(cfg.EraKey))
	dial(t, cfg)
	require.Equal(t, 3, *starts)
}

func TestServerThatIsSlowAtEachStartGetsAllTheTimeThereIs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	defer mcpconn.SetProbeTime(50 * time.Millisecond)()
	cfg := full(t, rpc.Auto)
	server := cfg.Command
	cfg.Eras = &mcpconn.Eras{}
	cfg.Command, cfg.Args = "/bin/sh", []string{"-c", `/bin/cat | (/bin/sleep 1.5; exec "$0")`, server}
	starts := 0
	cfg.OnStart = func(*mcpconn.Conn) { starts++ }
	_, err := mcpconn.Dial(within(t, 2*time.Second), cfg) // the silence ends half of it
	require.Error(t, err)
	require.Equal(t, 2, starts)
	require.True(t, cfg.Eras.Slow(cfg.EraKey))
	c, err := mcpconn.Dial(within(t, 4*soon), cfg)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, 3, starts)
}

func TestServerWhoseWordsMakeNoSenseIsKnownAtOnce(t *testing.T) {
	for how, want := range map[string]string{
		"frames":    "server speaks Content-Length framing, not one message a line",
		"indents":   "server spreads its messages over several lines, and has to write each on one",
		"answers 1": "server answers with an id that it was never given: 1",
	} {
		t.Run(how, func(t *testing.T) {
			cfg, starts := asked(t, how)
			begun := time.Now()
			_, err := mcpconn.Dial(within(t, 10*soon), cfg)
			var failed *rpc.StartError
			require.ErrorAs(t, err, &failed)
			require.EqualError(t, failed.Err, want)
			require.Less(t, time.Since(begun), 5*soon)
			require.Equal(t, 1, *starts)
		})
	}
}

func TestServerThatPrintsWhatMakesNoSenseAndAnswersLateIsConnected(t *testing.T) {
	for how := range strangeLines {
		for _, era := range []rpc.Era{rpc.Auto, rpc.Legacy} {
			t.Run(how+" "+string(era), func(t *testing.T) {
				t.Parallel()
				cfg, starts := asked(t, how)
				cfg.Era = era
				dial(t, cfg)
				require.Equal(t, 1, *starts)
			})
		}
	}
}

func TestServerInDoubtIsGivenUpLongBeforeTheEnd(t *testing.T) {
	defer mcpconn.SetDoubtTime(100 * time.Millisecond)()
	cfg, _ := asked(t, "answers 1")
	cfg.Era = rpc.Legacy // so that there is one question, and one strange answer
	_, err := mcpconn.Dial(within(t, 10*soon), cfg)
	require.ErrorContains(t, err, "server answers with an id that it was never given: 1")
}

func TestWhatAServerSaysOnStdoutIsInTheFailure(t *testing.T) {
	cfg, _ := asked(t, "talks and exits")
	_, err := mcpconn.Dial(within(t, 4*soon), cfg)
	var failed *rpc.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "usage: server --port\n", failed.Stdout)
	require.Equal(t, "exit status 0", failed.Exit)
}

func TestServerThatWasModernAndIgnoresTheQuestionIsLegacyFromThenOn(t *testing.T) {
	defer mcpconn.SetProbeTime(100 * time.Millisecond)()
	cfg, starts := asked(t, "ignores it")
	cfg.Eras.Set(cfg.EraKey, rpc.Modern)
	dial(t, cfg)
	require.Equal(t, 1, *starts)
	require.Equal(t, rpc.Legacy, cfg.Eras.Of(cfg.EraKey))
}

func TestServerThatWasLegacyAndHasNoInitializeAnyMoreIsModernFromThenOn(t *testing.T) {
	cfg, starts := asked(t, "has no initialize")
	cfg.Eras.Set(cfg.EraKey, rpc.Legacy)
	dial(t, cfg)
	require.Equal(t, 1, *starts)
	require.Equal(t, rpc.Modern, cfg.Eras.Of(cfg.EraKey))
}

func TestHurryOfACallerThatHasLeftCountsNoMore(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg, starts := asked(t, "answers it late")
	cfg.Hurry = time.Now().Add(-time.Second)
	c := dial(t, cfg)
	require.Equal(t, 1, *starts)
	require.True(t, mcp.IsModernProtocol(c.Info().ProtocolVersion))
}

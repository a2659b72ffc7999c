package mcpconn_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/mcpconn"
)

// questioned runs a server whose environment says what becomes of
// server/discover; it has initialize besides.
func questioned() bool {
	how := os.Getenv("MCPCONN_QUESTIONED")
	if how == "" {
		return false
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&req) != nil {
			return true
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": map[string]any{}}
		switch {
		case req.ID == nil:
			continue
		case req.Method == "initialize":
			answer["result"] = json.RawMessage(`{"protocolVersion":"2025-06-18","serverInfo":{"name":"q","version":"1"},"capabilities":{}}`)
		case req.Method != "server/discover":
		case how == "ignores it":
			continue
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

// asked is such a server, and what counts its starts.
func asked(t testing.TB, how string) (cfg mcpconn.Config, starts *int) {
	t.Helper()
	cfg = child(t, "MCPCONN_QUESTIONED="+how)
	cfg.Eras = &mcpconn.Eras{}
	starts = new(int)
	cfg.OnStart = func(int) { *starts++ }
	return cfg, starts
}

func TestServerThatRefusesTheQuestionAndExitsIsStartedAgain(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg, starts := asked(t, "refuses it and exits")
	dial(t, cfg)
	require.Equal(t, 2, *starts)
	require.Equal(t, mcpconn.Legacy, cfg.Eras.Of(cfg.EraKey))
	dial(t, cfg)
	require.Equal(t, 3, *starts, "it isn't asked again")
}

func TestServerThatWasModernAndIgnoresTheQuestionIsForgotten(t *testing.T) {
	cfg, starts := asked(t, "ignores it")
	cfg.Eras.Set(cfg.EraKey, mcpconn.Modern)
	_, err := mcpconn.Dial(within(t, 300*time.Millisecond), cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, *starts, "a modern server has all the time there is")
	require.Equal(t, mcpconn.Auto, cfg.Eras.Of(cfg.EraKey))
	defer mcpconn.SetProbeTime(100 * time.Millisecond)()
	dial(t, cfg)
}

func TestHurryOfACallerThatHasLeftCountsNoMore(t *testing.T) {
	defer mcpconn.SetProbeTime(time.Minute)()
	cfg, starts := asked(t, "answers it late")
	cfg.Hurry = time.Now().Add(-time.Second)
	c := dial(t, cfg)
	require.Equal(t, 1, *starts)
	require.True(t, mcp.IsModernProtocol(c.Info().ProtocolVersion))
}

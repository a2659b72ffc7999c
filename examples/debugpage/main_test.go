package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(serveEnv); name != "" {
		if serve(name) != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// begin runs the example until the test's end, and gives the page's URL.
func begin(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, ln, 4) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + ln.Addr().String() + "/debug/mcppool"
}

func TestTheChatsCallAndNothingIsLeft(t *testing.T) {
	url := begin(t)
	var s struct {
		Stats    struct{ Calls, Processes int }
		Sessions []struct{ PID int }
	}
	for deadline := time.Now().Add(time.Minute); s.Stats.Calls < 5 || s.Stats.Processes == 0; time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%+v", s)
		r, err := http.Get(url + "?format=json")
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(r.Body).Decode(&s))
		require.NoError(t, r.Body.Close())
	}
	require.NotEmpty(t, s.Sessions)
}

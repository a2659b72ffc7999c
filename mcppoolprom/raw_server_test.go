package mcppoolprom_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

// serverEnv makes the test binary a server of a kind.
const serverEnv = "MCPPOOLPROM_TEST_SERVER"

// The values of serverEnv.
const (
	rawServer     = "raw"     // tells all that it was given, wherever it can
	exitingServer = "exiting" // so does this, and ends before any handshake
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverEnv); kind != "" {
		serveRaw(kind)
		return
	}
	os.Exit(m.Run())
}

// child is a server that runs as a child process: this binary again.
func child(t testing.TB, kind string) mcppool.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	// A binary built with -race would sleep a second at its exit.
	return mcppool.Server{Command: self, Env: map[string]string{serverEnv: kind, "GORACE": "atexit_sleep_ms=0"}}
}

// serveRaw is the process of a server that is written by hand.
func serveRaw(kind string) {
	told := strings.Join(append(os.Args[1:], os.Environ()...), "\n")
	fmt.Fprintln(os.Stderr, told)
	fmt.Println("no message:", strings.ReplaceAll(told, "\n", " "))
	if kind == exitingServer {
		os.Exit(3)
	}
	asJSON, _ := json.Marshal(told)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || req.ID == nil {
			continue
		}
		answer := func(member, format string, args ...any) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", req.ID, member, fmt.Sprintf(format, args...))
		}
		switch method := req.Method + " " + req.Params.Name; strings.TrimSpace(method) {
		case "initialize":
			answer("result", `{"protocolVersion":"2025-06-18","serverInfo":{"name":%s,"version":"1"},"capabilities":{"tools":{}}}`, asJSON)
		case "tools/call tell":
			answer("result", `{"content":[{"type":"text","text":%s}]}`, asJSON)
		case "tools/call fail":
			answer("result", `{"content":[{"type":"text","text":%s}],"isError":true}`, asJSON)
		case "tools/call hang":
			for in.Scan() { // until nobody wants the answer any longer
			}
		case "tools/call die":
			fmt.Fprintln(os.Stderr, "dying with", told)
			os.Exit(7)
		default:
			answer("error", `{"code":-32601,"message":%s,"data":%[1]s}`, asJSON)
		}
	}
}

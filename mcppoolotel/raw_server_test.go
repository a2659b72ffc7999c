package mcppoolotel_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The values of serverEnv.
const (
	mcpServer      = "mcp"      // is made with mcp-go
	rawServer      = "raw"      // tells all that it was given, wherever it can
	exitingServer  = "exiting"  // so does this, and ends before any handshake
	refusingServer = "refusing" // answers initialize with an error
	oddServer      = "odd"      // has a version that there isn't
	oldServer      = "old"      // ends when it is asked something before initialize
)

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
			version := []byte(`"2025-06-18"`)
			switch kind {
			case refusingServer:
				answer("error", `{"code":-32603,"message":%s}`, asJSON)
				continue
			case oddServer:
				version = asJSON
			}
			answer("result", `{"protocolVersion":%s,"serverInfo":{"name":%s,"version":"1"},"capabilities":{"tools":{}}}`, version, asJSON)
		case "tools/call tell":
			answer("result", `{"content":[{"type":"text","text":%s}]}`, asJSON)
		case "tools/call fail":
			answer("result", `{"content":[{"type":"text","text":%s}],"isError":true}`, asJSON)
		case "tools/call pid":
			answer("result", `{"content":[{"type":"text","text":"%d"}]}`, os.Getpid())
		case "tools/call hang":
			for in.Scan() { // until nobody wants the answer any longer
			}
		case "tools/call die":
			fmt.Fprintln(os.Stderr, "dying with", told)
			os.Exit(7)
		default:
			if kind == oldServer && req.Method == "server/discover" {
				os.Exit(1)
			}
			answer("error", `{"code":-32601,"message":%s,"data":%[1]s}`, asJSON)
		}
	}
}

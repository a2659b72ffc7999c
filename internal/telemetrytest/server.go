// Package telemetrytest is what the tests of modules for metrics and traces share:
// servers that write all that they were given wherever they can, and the life of a
// pool that uses them, of which no secret may go out.
package telemetrytest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcppool/mcppool"
)

// ServerEnv is the environment variable that makes a test binary a server of the
// kind that is its value.
const ServerEnv = "MCPPOOL_TELEMETRY_SERVER"

// The kinds of servers that [Serve] knows. All write their arguments and their
// environment to stdout, to stderr and into what they answer.
const (
	Raw      = "raw"
	Exiting  = "exiting"  // ends before any handshake
	Refusing = "refusing" // answers initialize with an error
	Odd      = "odd"      // has a version that there isn't
	Old      = "old"      // ends when it is asked something before initialize
)

// Child returns a server that runs as a child process: the test binary again,
// whose TestMain calls [Serve].
func Child(t testing.TB, kind string) mcppool.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A binary built with -race would sleep a second at its exit.
	return mcppool.Server{Command: self, Env: map[string]string{ServerEnv: kind, "GORACE": "atexit_sleep_ms=0"}}
}

type request struct {
	ID     json.RawMessage
	Method string
	Params struct{ Name string }
}

// answerf writes a result or an error, as member says.
func (r *request) answerf(member, format string, args ...any) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", r.ID, member, fmt.Sprintf(format, args...))
}

// Serve is the process of a server of some kind, until its stdin ends.
func Serve(kind string) {
	given := strings.Join(append(os.Args[1:], os.Environ()...), "\n")
	fmt.Fprintln(os.Stderr, given)
	fmt.Println("no message:", strings.ReplaceAll(given, "\n", " "))
	if kind == Exiting {
		os.Exit(3)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch r.Method {
		case "initialize":
			r.initialize(kind, given)
		case "tools/call":
			r.call(in, given)
		default:
			if kind == Old && r.Method == "server/discover" {
				os.Exit(1)
			}
			r.refuse(given)
		}
	}
}

func (r *request) refuse(given string) {
	r.answerf("error", `{"code":-32601,"message":%s,"data":%[1]s}`, quote(given))
}

func (r *request) initialize(kind, given string) {
	version := `"2025-06-18"`
	switch kind {
	case Refusing:
		r.answerf("error", `{"code":-32603,"message":%s}`, quote(given))
		return
	case Odd:
		version = quote(given)
	}
	r.answerf("result", `{"protocolVersion":%s,"serverInfo":{"name":%s,"version":"1"},"capabilities":{"tools":{}}}`, version, quote(given))
}

func (r *request) call(in *bufio.Scanner, given string) {
	switch r.Params.Name {
	case "tell":
		r.answerf("result", `{"content":[{"type":"text","text":%s}]}`, quote(given))
	case "fail":
		r.answerf("result", `{"content":[{"type":"text","text":%s}],"isError":true}`, quote(given))
	case "pid":
		r.answerf("result", `{"content":[{"type":"text","text":"%d"}]}`, os.Getpid())
	case "hang":
		for more := true; more; { // until nobody wants the answer any longer
			more = in.Scan()
		}
	case "die":
		fmt.Fprintln(os.Stderr, "dying with", given)
		os.Exit(7)
	default:
		r.refuse(given)
	}
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("bug: " + err.Error()) // there is no such string
	}
	return string(text)
}

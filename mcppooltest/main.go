package mcppooltest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcppool/mcppool"
)

const (
	// variable makes a process a server, of the modes that it lists.
	variable = "MCPPOOLTEST_SERVER"
	// ownerVariable is the id of the test's process, in all that a server starts.
	ownerVariable = "MCPPOOLTEST_OWNER"
)

// Main runs the tests of a package and exits; m is a [*testing.M]. The same program is
// the server when it is started by what [Server] returns:
//
//	func TestMain(m *testing.M) { mcppooltest.Main(m) }
func Main(m interface{ Run() int }) {
	Serve()
	os.Exit(m.Run())
}

// Serve is for a TestMain that has more to do than [Main], whose first statement it is:
// where this process was started as a server, it serves and exits. Else it returns at
// once.
func Serve() {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	modes, err := parseModes(value)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	switch {
	case modes.has("sleeper"):
		sleeper()
	case modes.has("wrapper"):
		wrapper(value)
	case modes.has("fast"):
		fast()
	default:
		newServer(modes).run()
	}
	os.Exit(0)
}

// Server is a real MCP server over stdio, as a process of this test binary, whose
// TestMain calls [Main]. Without modes it behaves well, and has these tools:
//
//	echo {text}       the text
//	note {text}       all the texts so far, one a line: it has a state
//	count             how often it was called, the first time 1
//	pid               of the server's own process
//	getenv {text}     the value of that environment variable
//	args              the arguments as they came
//	big {n}           a text of so many bytes
//	sleep {ms}        answers late; it doesn't look at cancellations
//	seen              the notifications so far, one a line
//	error             a JSON-RPC error with data
//	fail              a result with isError
//	notify {n}        so many progress notifications and then the answer, in one write
//	storm {n}         so many log notifications, then a tools/list_changed
//	ask {method}      asks the client, and answers with what it said
//	pings {n}         pings the client so often without waiting
//	result {result, before}  answers with the result as it is, after the messages before it,
//	                  in whose params "%TOKEN%" is the call's progress token
//	say {text}        writes the text in place of an answer, with the request's id for $ID
//	stderr {text}     writes it to stderr
//	junk {n}          so many lines on stdout that are no message
//	last {n}          answers, "last" and n more bytes, and exits with code 0
//	die               exits with code 3
//	daemon            exits with code 3 and leaves a daemon that holds the pipes
//	lastdaemon        answers, and then as daemon
//
// Modes make it hostile. Each is a word, or a word and a value: "crlf",
// "slowexit=300ms"; they add up. How it starts and ends:
//
//	slowstart=D       needs so long to start
//	die=start|handshake|initialized|call  exits at that point, with code 3 and a word on stderr
//	ignoreeof         goes on when its stdin ends
//	ignoreterm        ignores SIGTERM
//	slowexit=D        needs so long to exit after the end of its stdin
//	closeout          closes its stdout at a call, and lives
//	closein           closes its stdin at a call, says so on stderr, and lives
//	wrapper           is a launcher such as npx, whose child is the server with the other modes
//	setsid            starts a daemon that leaves the group and holds no pipe
//	fast              a nearly free loop that answers every call alike
//
// What it says:
//
//	crlf, bom, noise, blank, stringid, floatid, batch, glued   odd forms of its messages
//	oldlog            before each message, answers from a log of yesterday
//	nonewline         the answer to the tool "last" lacks its newline
//	early             notifications before anything else
//	bigline=N         at a call, a line of N bytes without end
//	stderr=N          writes so many bytes to stderr at the start
//	nullid            answers a call with an error whose id is null
//	refusenotes       answers a notification with errors without an id
//
// What it doesn't do:
//
//	stopreading=N     reads so many messages and no more
//	silent            never answers tools/call
//	strict            exits at a method that it doesn't know, before initialize also server/discover
//	mute              says nothing to methods that it doesn't know
//
// It fails t if there is no such mode. A server ends by itself after a minute. Don't
// call it in a bubble of [testing/synctest], whose clock stands still while a process runs.
func Server(t testing.TB, modes ...string) mcppool.Server {
	t.Helper()
	if _, err := parseModes(strings.Join(modes, ",")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := Env(modes...)
	env[ownerVariable] = strconv.Itoa(os.Getpid())
	return mcppool.Server{Command: self, Env: env}
}

// Env is the environment that makes a program which calls [Main] or [Serve] a [Server] of
// these modes, for a test that starts it in its own way, such as in a container.
func Env(modes ...string) map[string]string {
	// A binary built with -race would sleep a second at its exit.
	return map[string]string{variable: strings.Join(modes, ","), "GORACE": "atexit_sleep_ms=0"}
}

// known are all modes.
var known = []string{
	"slowstart", "die", "ignoreeof", "ignoreterm", "slowexit", "closeout", "closein", "wrapper", "setsid", "fast",
	"crlf", "bom", "noise", "blank", "stringid", "floatid", "batch", "glued", "oldlog", "nonewline", "early", "bigline",
	"stderr", "nullid", "refusenotes", "stopreading", "silent", "strict", "mute",
	"sleeper", // a daemon that a server starts
}

// modes are words and their values.
type modes map[string]string

func parseModes(value string) (modes, error) {
	m := make(modes)
	for word := range strings.SplitSeq(value, ",") {
		name, v, _ := strings.Cut(word, "=")
		if name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("mcppooltest: there is no mode %q of a server", name)
		}
		m[name] = v
	}
	return m, nil
}

func (m modes) has(name string) bool {
	_, ok := m[name]
	return ok
}

func (m modes) number(name string) int {
	n, _ := strconv.Atoi(m[name])
	return n
}

func (m modes) duration(name string) time.Duration {
	d, _ := time.ParseDuration(m[name])
	return d
}

// toolList is what the server answers to tools/list.
func toolList() map[string]any {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		list = append(list, map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
	}
	return map[string]any{"tools": list}
}

// Package hostile is an MCP server for tests, with faults to choose from. It is
// part of the test binary itself, which runs as the server when it is started
// with the environment that [Env] returns:
//
//	func TestMain(m *testing.M) {
//		hostile.Main()
//		os.Exit(m.Run())
//	}
package hostile

import (
	"os"
	"strconv"
	"strings"
	"time"
)

const variable = "MCPPOOL_HOSTILE"

// Env returns the environment entry that makes Main a server with the given
// traits. Each is a word, or a word and a value: "crlf", "slowexit=300ms".
//
// How it starts and ends:
//
//	die=start|handshake|initialized|call  exits at that point, with code 3 and a word on stderr
//	ignoreeof         goes on when its stdin ends
//	ignoreterm        ignores SIGTERM
//	slowexit=D        needs so long to exit after the end of its stdin
//	closeout          closes its stdout at a call, and lives
//	closein           closes its stdin at a call, says so on stderr, and lives
//	wrapper           is a launcher whose child is the server with the other traits
//	setsid            starts a daemon that leaves the group and holds no pipe
//	fast              a nearly free loop that answers every call alike
//
// What it says:
//
//	crlf, bom, noise, blank, stringid, floatid, batch, glued
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
func Env(traits ...string) string {
	name, value := Entry(traits...)
	return name + "=" + value
}

// Entry is Env in two parts.
func Entry(traits ...string) (name, value string) { return variable, strings.Join(traits, ",") }

// Main runs the server and exits, if the environment says so.
func Main() {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	t := parseTraits(value)
	switch {
	case t.has("sleeper"):
		sleeper()
	case t.has("wrapper"):
		wrapper(value)
	case t.has("fast"):
		fast()
	default:
		newServer(t).run()
	}
	os.Exit(0)
}

type traits map[string]string

func parseTraits(value string) traits {
	t := make(traits)
	for word := range strings.SplitSeq(value, ",") {
		name, v, _ := strings.Cut(word, "=")
		t[name] = v
	}
	return t
}

func (t traits) has(name string) bool {
	_, ok := t[name]
	return ok
}

func (t traits) number(name string) int {
	n, _ := strconv.Atoi(t[name])
	return n
}

func (t traits) duration(name string) time.Duration {
	d, _ := time.ParseDuration(t[name])
	return d
}

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcppool/mcppool/internal/compare/internal/cheap"
)

// row is one thing that several contenders do.
type row struct {
	group string
	name  string
	target
	contenders []string

	// The call. What isn't raw is given as a program would have it.
	tool     string
	args     any
	size     int // of the content of its result
	callers  int // that share the connection; 0 means 1
	sessions int // that each caller uses in turn; 0 means 1

	part part
}

// part is which part of a connection's life is measured.
type part int

const (
	calls part = iota
	connects
	closes
)

const (
	kB = 1 << 10
	mB = 1 << 20
)

const (
	groupSmall   = "Small calls"
	groupMany    = "64 callers of one connection"
	groupScopes  = "Callers of 8 sessions"
	groupLarge   = "Large results"
	groupArgs    = "Large arguments"
	groupReal    = "A server made with mcp-go"
	groupConnect = "Connect"
	groupClose   = "Close"
)

const (
	rowEcho       = "echo, legacy"
	rowEchoRaw    = "echo, legacy, raw arguments"
	rowEchoModern = "echo, modern"
	rowMany       = "64 callers, legacy"
	rowManyModern = "64 callers, modern"
	rowArgs       = "arguments of 1 MB"
	rowArgsRaw    = "arguments of 1 MB, raw"
	rowReal       = "echo, mcp-go's server"
	rowConnect    = "connect, legacy pinned"
	rowConnectOld = "connect, legacy found out"
	rowConnectNew = "connect, modern found out"
	rowConnectGo  = "connect, mcp-go's server"
	rowClose      = "close, cheap server"
	rowCloseGo    = "close, mcp-go's server"
)

func rowText(size int) string  { return "text of " + sizeName(size) }
func rowImage(size int) string { return "image of " + sizeName(size) }

func rowScopes(callers int) string { return fmt.Sprintf("%d callers of 8 scopes", callers) }

func sizeName(n int) string {
	if n < mB {
		return fmt.Sprintf("%d kB", n/kB)
	}
	return fmt.Sprintf("%d MB", n/mB)
}

var sizes = []int{64 * kB, mB, 10 * mB}

// rows lists what is measured, but for the idle sessions.
func rows() []row {
	small := strings.Repeat("0123456789abcdef", 4)
	echo := map[string]any{"text": small}
	onOld, onNew := target{cheapLegacy, legacy}, target{cheapModern, modern}
	all := []row{
		{group: groupSmall, name: rowEcho, target: onOld, tool: "echo", args: echo, size: len(small),
			contenders: []string{mcpGo, pool, goSDK, conn, floor, poolOneShot, mcpGoOneShot}},
		{group: groupSmall, name: rowEchoRaw, target: onOld, tool: "echo", args: rawOf(echo), size: len(small),
			contenders: []string{mcpGo, pool, goSDK, conn, floor}},
		{group: groupSmall, name: rowEchoModern, target: onNew, tool: "echo", args: echo, size: len(small),
			contenders: []string{mcpGo, pool, goSDK}},
		{group: groupMany, name: rowMany, target: onOld, tool: "echo", args: echo, size: len(small), callers: 64,
			contenders: []string{mcpGo, poolShared, goSDK, conn, floor}},
		{group: groupMany, name: rowManyModern, target: onNew, tool: "echo", args: echo, size: len(small), callers: 64,
			contenders: []string{mcpGo, poolShared, goSDK}},
	}
	for _, callers := range []int{64, 8} {
		all = append(all, row{group: groupScopes, name: rowScopes(callers), target: onOld, tool: "echo", args: echo, size: len(small),
			callers: callers, sessions: 8, contenders: []string{mcpGo, pool, conn, connInTurn}})
	}
	for _, tool := range []string{"text", "image"} {
		name := rowText
		if tool == "image" {
			name = rowImage
		}
		for _, n := range sizes {
			all = append(all, row{group: groupLarge, name: name(n), target: onOld, tool: tool,
				args: map[string]any{"size": n}, size: n, contenders: []string{mcpGo, pool, goSDK, floor}})
		}
	}
	large := map[string]any{"text": cheap.Text(mB)}
	return append(all,
		row{group: groupArgs, name: rowArgs, target: onOld, tool: "count", args: large, size: len("counted"),
			contenders: []string{mcpGo, pool, goSDK, floor}},
		row{group: groupArgs, name: rowArgsRaw, target: onOld, tool: "count", args: rawOf(large), size: len("counted"),
			contenders: []string{mcpGo, pool, goSDK, floor}},
		row{group: groupReal, name: rowReal, target: target{realServer, auto}, tool: "echo", args: echo, size: len(small),
			contenders: []string{mcpGo, pool, goSDK}},
		life(groupConnect, rowConnect, onOld, connects, mcpGo, pool, goSDK),
		life(groupConnect, rowConnectOld, target{cheapLegacy, auto}, connects, mcpGo, pool, goSDK),
		life(groupConnect, rowConnectNew, target{cheapModern, auto}, connects, mcpGo, pool, goSDK),
		life(groupConnect, rowConnectGo, target{realServer, auto}, connects, mcpGo, pool, goSDK),
		life(groupClose, rowClose, onOld, closes, mcpGo, pool, goSDK, floor),
		life(groupClose, rowCloseGo, target{realServer, auto}, closes, mcpGo, pool, goSDK),
	)
}

// life is a row of connections that are made, used once and closed.
func life(group, name string, t target, p part, contenders ...string) row {
	return row{group: group, name: name, target: t, part: p, contenders: contenders,
		tool: "echo", args: json.RawMessage(`{"text":"hello"}`), size: len("hello")}
}

func rawOf(args map[string]any) json.RawMessage {
	return fmt.Appendf(nil, `{"text":%s}`, cheap.Quoted(args["text"].(string)))
}

// argsFor returns the arguments in the form that a contender takes.
func (r *row) argsFor(contender string) any {
	if args, ok := r.args.(map[string]any); ok && contender == floor {
		raw, err := json.Marshal(args)
		if err != nil {
			panic("bug: arguments that can't be encoded: " + err.Error())
		}
		return json.RawMessage(raw)
	}
	return r.args
}

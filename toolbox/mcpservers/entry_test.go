package mcpservers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestOneBadEntryCostsOneServer(t *testing.T) {
	f := parse(t, `{"mcpServers": {
  "good": {"command": "x"},
  "bad": {"command": 7},
  "worse": "x",
  "": {"command": "x"},
  "last": {"url": "https://a.example"}
}}`)
	var ok, broken []string
	for _, e := range f.Entries {
		if e.Err == nil {
			ok = append(ok, e.Name)
		} else {
			broken = append(broken, e.Err.Error())
		}
	}
	require.Equal(t, []string{"good", "last"}, ok)
	require.Equal(t, []string{
		`mcpservers: mcp.json:3: server "bad": command: isn't a text in quotes`,
		`mcpservers: mcp.json:4: server "worse": isn't an object: write {"command": ..., "args": [...]} or {"url": ...}`,
		`mcpservers: mcp.json:5: has an empty name: name it`,
	}, broken)
}

func TestAnErrorSaysFileLineServerFieldAndWhatToWrite(t *testing.T) {
	for server, want := range map[string]string{
		`{}`:                                           `command: is missing or empty: write "command": "..." and "args": [...], or "url"`,
		`{"command": ""}`:                              `command: is missing or empty: write "command": "..." and "args": [...], or "url"`,
		`{"type": "http"}`:                             `url: is missing or empty: write "url": "https://..."`,
		`{"command": "x", "args": "a b"}`:              `args: isn't a list: write ["a", "b"], each argument a text of its own`,
		`{"command": "x", "args": [["a"]]}`:            `args[0]: isn't a text in quotes`,
		`{"command": "x", "env": ["A=1"]}`:             `env: isn't an object: write {"NAME": "value"}`,
		`{"command": "x", "env": {"A": {}}}`:           `env.A: isn't a text in quotes`,
		`{"command": "x", "env": {"A=B": "1"}}`:        `env.A=B: isn't a variable that a process can have: its name is empty or has "=" in it, or a byte is zero`,
		`{"command": "npx -y pkg"}`:                    `command: holds blanks and isn't a program: arguments go in args, each a text of its own`,
		`{"command": "/bin/none such", "args": ["a"]}`: `command: holds blanks and isn't a program: arguments go in args, each a text of its own`,
		`{"command": []}`:                              `command: is a list without a command: write ["command", "argument"]`,
		`{"command": "~other/x"}`:                      `command: begins with another user's ~: write the path in full`,
		`{"command": "x", "url": "https://a.example"}`: `url: stands beside a command: remove one, a server is run or reached`,
		`{"url": "https://a.example", "serverUrl": "https://b.example"}`:   `serverUrl: stands beside url: remove one`,
		`{"type": "stdio", "url": "https://a.example"}`:                    `type: is stdio, but there is a url and no command: write http or sse, or a command`,
		`{"type": "sse", "command": "x"}`:                                  `type: is sse, but there is a command and no url: write stdio, or a url`,
		`{"type": "htpp", "url": "https://a.example"}`:                     `type: isn't a transport that is known: write stdio, http (streamable) or sse`,
		`{"type": 1, "url": "https://a.example"}`:                          `type: is neither a word (stdio, http, sse) nor an object`,
		`{"type": "sse", "transport": "http", "url": "https://a.example"}`: `transport: contradicts another field, which says sse: remove one`,
		`{"url": "a.example/mcp"}`:                                         `url: doesn't begin with http:// or https://, and nothing else is spoken here`,
		`{"url": "https://"}`:                                              `url: has no host`,
		`{"url": "https://%zz"}`:                                           `url: isn't a URL`,
		`{"url": "https://a.example", "headers": {"A B": "c"}}`:            `headers.A B: isn't a header's name`,
		`{"url": "https://a.example", "headers": {"A": "b\nc"}}`:           `headers.A: has a line break or a zero byte in its value`,
		`{"command": "x", "command": "y"}`:                                 `command: stands on line 1 too: remove one`,
		`{"command": "x", "env": {"A": "1", "A": "2"}}`:                    `env.A: stands on line 1 too: remove one`,
		`{"command": "x", "disabled": "yes"}`:                              `disabled: is neither true nor false`,
		`{"command": "x", "protocol": "new"}`:                              `protocol: is neither "legacy" nor "modern"`,
		`{"command": "x", "allowedTools": "a"}`:                            `allowedTools: isn't a list of tools' names: write ["a", "b"]`,
		`{"command": "x", "startup_timeout_sec": -1}`:                      `startup_timeout_sec: isn't a number that a time can be`,
		`{"command": "x", "bearer_token_env_var": "A B", "type": "stdio"}`: `bearer_token_env_var: isn't a variable's name`,
	} {
		require.EqualError(t, one(t, server).Err, `mcpservers: mcp.json:1: server "a": `+want, server)
	}
}

func TestAllThatIsWrongWithAServerIsSaidAtOnceOnOneLine(t *testing.T) {
	e := one(t, "{\n\"command\": \"x\",\n\"args\": 1,\n\"env\": {\"T\": \"${UNSET}\"}}")
	require.EqualError(t, e.Err, `mcpservers: mcp.json:3: server "a": args: isn't a list: write ["a", "b"], each argument a text of its own; `+
		`mcp.json:4: server "a": env.T: variable "UNSET" isn't set: set it, or write ${UNSET:-default}`)
	var all mcpservers.Errors
	require.ErrorAs(t, e.Err, &all)
	require.Len(t, all, 2)
	require.Equal(t, "UNSET", all[1].Variable)
	require.Equal(t, mcpservers.Place{File: "mcp.json", Line: 4, Server: "a", Field: "env.T"}, all[1].Place)
}

func TestAServerThatStandsTwiceInAFileIsAnErrorOfThatServer(t *testing.T) {
	f := parse(t, "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}},\n\"servers\": {\"b\": {\"command\": \"z\"}}}")
	require.Len(t, f.Entries, 2)
	require.EqualError(t, f.Entries[0].Err, `mcpservers: mcp.json:2: server "a": stands here and on line 4: remove one, or rename it`)
	require.EqualError(t, f.Entries[1].Err, `mcpservers: mcp.json:3: server "b": stands here and on line 5: remove one, or rename it`)

	f = parseAs(t, "config.toml", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\ncommand = \"x\"\n[mcp_servers.a]\ncommand = \"y\"\n", nil)
	require.EqualError(t, f.Entries[0].Err, `mcpservers: config.toml:1: server "a": stands here and on line 5: remove one, or rename it`)
	require.NoError(t, f.Entries[1].Err)

	f = parseAs(t, "a.yaml", "mcpServers:\n  a: {command: x}\n  a: {command: y}\n", nil)
	require.EqualError(t, f.Entries[0].Err, `mcpservers: a.yaml:2: server "a": stands here and on line 3: remove one, or rename it`)
}

func TestEveryWordForATransportIsUnderstood(t *testing.T) {
	for server, want := range map[string]string{
		`{"command": "x"}`:                                                                  "",
		`{"type": "stdio", "command": "x"}`:                                                 "stdio",
		`{"type": "local", "command": "x"}`:                                                 "stdio",
		`{"url": "https://a.example"}`:                                                      "",
		`{"type": "remote", "url": "https://a.example"}`:                                    "",
		`{"type": "http", "url": "https://a.example"}`:                                      "http",
		`{"type": "streamable-http", "url": "https://a.example"}`:                           "http",
		`{"type": "streamable_http", "url": "https://a.example"}`:                           "http",
		`{"type": "streamableHttp", "url": "https://a.example"}`:                            "http",
		`{"transport": "http", "url": "https://a.example/sse"}`:                             "http",
		`{"transportType": "sse", "url": "https://a.example/mcp"}`:                          "sse",
		`{"httpUrl": "https://a.example"}`:                                                  "http",
		`{"serverUrl": "https://a.example"}`:                                                "",
		`{"transport": {"type": "stdio", "command": "x"}}`:                                  "stdio",
		`{"transport": {"type": "sse", "url": "https://a.example", "headers": {"A": "b"}}}`: "sse",
		`{"type": "http", "transport": "streamable-http", "url": "https://a.example"}`:      "http",
	} {
		e := one(t, server)
		require.NoError(t, e.Err, server)
		require.Equal(t, want, e.Transport, server)
		require.NotEqual(t, e.Server.Command == "", e.Server.URL == "", server)
	}
	require.EqualError(t, one(t, `{"transport": {"type": "ws", "url": "ws://a.example"}}`).Err,
		`mcpservers: mcp.json:1: server "a": transport.type: is WebSocket, which isn't spoken here: stdio, http and sse are`)
}

func TestWhatHasNoEffectAtAURLOrInAChildIsLeftOutAndSaid(t *testing.T) {
	f := parse(t, `{"mcpServers": {
"a": {"url": "https://a.example", "args": ["x"], "env": {"A": "b"}, "cwd": "/x"},
"b": {"command": "x", "headers": {"A": "b"}, "colour": "red"}}}`)
	require.Equal(t, mcppool.Server{Name: "a", URL: "https://a.example"}, f.Entries[0].Server)
	require.Equal(t, mcppool.Server{Name: "b", Command: "x"}, f.Entries[1].Server)
	require.Equal(t, []string{
		`mcp.json:2: server "a": args: has no effect: a server at a url has no command line`,
		`mcp.json:2: server "a": env: has no effect: a server at a url has no environment`,
		`mcp.json:2: server "a": cwd: has no effect: a server at a url has no directory`,
		`mcp.json:3: server "b": colour: isn't known and has no effect`,
		`mcp.json:3: server "b": headers: has no effect: a server that is run takes no headers`,
	}, warnings(f))
}

func TestATildeInCommandAndDirectoryIsTheHome(t *testing.T) {
	e := one(t, `{"command": "~/bin/x", "cwd": "~"}`)
	require.Equal(t, mcppool.Server{Name: "a", Command: "/home/u/bin/x", Dir: "/home/u"}, e.Server)
	require.Equal(t, "/home/u/x", one(t, `{"command": ["~/x", "~/y"]}`).Server.Command)
	require.Equal(t, []string{`mcp.json:1: server "a": args[0]: begins with "~", which isn't replaced in arguments: there is no shell; write ${userHome}`},
		warnings(parse(t, `{"mcpServers": {"a": {"command": "x", "args": ["~/y"]}}}`)))
}

func TestACommandThatIsAListComesBeforeArgs(t *testing.T) {
	for _, server := range []string{`{"command": ["x", "a"], "args": ["b"]}`, `{"args": ["b"], "command": ["x", "a"]}`} {
		require.Equal(t, mcppool.Server{Name: "a", Command: "x", Args: []string{"a", "b"}}, one(t, server).Server, server)
	}
}

func TestEnvWinsOverWhatIsHandedOn(t *testing.T) {
	e := one(t, `{"command": "x", "env": {"A": "own"}, "env_vars": ["A", {"name": "B"}, "UNSET"]}`)
	require.NoError(t, e.Err)
	require.Equal(t, map[string]string{"A": "own", "B": "value-of-B"}, e.Server.Env)
}

func TestACommandWithBlanksThatIsAProgramIsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my server")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, one(t, `{"command": "`+filepath.ToSlash(path)+`"}`).Err)
}

func TestARelativeDirectoryCountsFromTheProject(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "x", "cwd": "sub"}}}`
	require.Equal(t, filepath.FromSlash("/project/sub"), parse(t, text).Entries[0].Server.Dir)
	f := parseAs(t, "mcp.json", text, &mcpservers.Options{Home: "/home/u"})
	require.Equal(t, "sub", f.Entries[0].Server.Dir)
	require.Equal(t, []string{`mcp.json:1: server "a": cwd: is relative, and counts from this process's own directory: write it in full, or set Options.WorkspaceFolder`}, warnings(f))
}

func TestTheFolderAroundAProjectsFileIsItsWorkspace(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "${workspaceFolder}/x"}}}`
	for _, name := range []string{"/p/.cursor/mcp.json", "/p/.vscode/mcp.json", "/p/.kiro/settings/mcp.json", "/p/.mcp.json"} {
		f := parseAs(t, name, text, &mcpservers.Options{Home: "/home/u"})
		require.NoError(t, f.Entries[0].Err, name)
		require.Equal(t, "/p/x", f.Entries[0].Server.Command, name)
	}
	for _, name := range []string{"/home/u/.cursor/mcp.json", "/home/u/.mcp.json", "/etc/mcp.json"} {
		f := parseAs(t, name, text, &mcpservers.Options{Home: "/home/u"})
		require.ErrorContains(t, f.Entries[0].Err, "needs the project's directory: set Options.WorkspaceFolder", name)
	}
}

func TestTheUnitOfATimeoutIsItsHosts(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "x", "timeout": 90}}}`
	for host, want := range map[mcpservers.Host]time.Duration{
		mcpservers.Cline: 90 * time.Second, mcpservers.GeminiCLI: 90 * time.Millisecond, mcpservers.UnknownHost: 0,
	} {
		f := parseAs(t, "mcp.json", text, &mcpservers.Options{Host: host})
		require.Equal(t, want, f.Entries[0].CallTimeout, host)
		require.Len(t, f.Warnings, map[bool]int{true: 1}[want == 0], host)
	}
	f := parseAs(t, "mcp.json", text, &mcpservers.Options{Host: mcpservers.ClaudeCode})
	require.Zero(t, f.Entries[0].CallTimeout)
	require.Equal(t, []string{`mcp.json:1: server "a": timeout: has no effect: it counts milliseconds, and this host ignores less than a second`}, warnings(f))
	e := one(t, `{"command": "x", "tool_timeout_sec": 1e300}`)
	require.NoError(t, e.Err)
	require.Positive(t, e.CallTimeout)
}

func TestNamesFromAFileCanNotBreakALineOrFillIt(t *testing.T) {
	f := parse(t, `{"mcpServers": {"a\nb`+strings.Repeat("c", 500)+`": {"x\ny": 1, "command": "x"}}}`)
	for _, w := range warnings(f) {
		require.NotContains(t, w, "\n")
		require.Less(t, len(w), 400)
	}
}

func TestAVariableThatAFieldNamesCanOnlyBeSet(t *testing.T) {
	for _, field := range []string{`"bearer_token_env_var": "UNSET"`, `"env_http_headers": {"A": "UNSET"}`} {
		err := one(t, `{"url": "https://a.example", `+field+`}`).Err
		require.ErrorContains(t, err, `variable "UNSET" isn't set: set it`)
		require.NotContains(t, err.Error(), "default")
	}
}

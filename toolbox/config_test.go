package toolbox_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

func env(pairs ...string) *toolbox.ConfigOptions {
	return &toolbox.ConfigOptions{LookupEnv: func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}}
}

func parse(t testing.TB, text string, opts *toolbox.ConfigOptions) *toolbox.Config {
	t.Helper()
	c, err := toolbox.ParseConfig([]byte(text), opts)
	require.NoError(t, err)
	return c
}

func warnings(c *toolbox.Config) []string {
	var list []string
	for _, w := range c.Warnings {
		list = append(list, w.String())
	}
	return list
}

func TestAClaudeDesktopFileIsRead(t *testing.T) {
	c := parse(t, `{
  "globalShortcut": "",
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": {"GITHUB_TOKEN": "ghp_x", "PORT": 3000, "UNSET": null}
    }
  }
}`, nil)
	require.Equal(t, []toolbox.Entry{
		{ID: "github", Name: "github", Server: mcppool.Server{
			Command: "docker", Args: []string{"run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"},
			Env: map[string]string{"GITHUB_TOKEN": "ghp_x", "PORT": "3000"},
		}},
		{ID: "memory", Name: "memory", Server: mcppool.Server{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}}},
	}, c.Entries)
	require.Equal(t, []string{"globalShortcut: is unknown here and was read over"}, warnings(c))
}

func TestACursorFileIsRead(t *testing.T) {
	c := parse(t, `{"mcpServers": {
  "remote": {"url": "https://${HOST:-example.com}/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
  "local": {"type": "stdio", "command": "${BIN}/srv", "cwd": "${BIN}", "envFile": ".env", "disabled": true,
            "allowedTools": ["a"], "disabledTools": ["b"], "name": "Local one"}
}}`, env("TOKEN", "t${X}$5"))
	require.Equal(t, []toolbox.Entry{
		{ID: "local", Name: "Local one", Disabled: true, Allow: []string{"a"}, Deny: []string{"b"}, Server: mcppool.Server{Command: "/srv"}},
		{ID: "remote", Name: "remote", Server: mcppool.Server{URL: "https://example.com/mcp", Header: map[string]string{"Authorization": "Bearer t${X}$5"}}},
	}, c.Entries)
	require.Equal(t, []string{`server "local": envFile: is unknown here and was read over`}, warnings(c))
	_, err := c.Static().Lookup(t.Context(), "local")
	require.NoError(t, err)
	enabled, err := c.Static().List(t.Context())
	require.NoError(t, err)
	require.Len(t, enabled, 1)
}

const vscode = "\xef\xbb\xbf" + `// see https://code.visualstudio.com/docs
{
  "inputs": [ /* asked once */
    {"type": "promptString", "id": "key", "description": "API key", "password": true},
    {"type": "pickString", "id": "region", "default": "eu", "options": ["eu", "us"]},
  ],
  "servers": {
    "api": {
      "type": "http",
      "url": "https://example.com/mcp//x", // not a comment: the one in the string
      "headers": {"X-Key": "${input:key}", "X-Region": "${input:region}"},
    },
    "old": {"type": "sse", "url": "https://example.com/events"},
    "run": {"type": "stdio", "command": "srv", "args": ["/* no */", "a,]", "\",}",],},
  },
}
`

func TestAVSCodeFileIsRead(t *testing.T) {
	opts := env()
	opts.Input = func(id string) (string, bool) { return "k-" + id, id == "key" }
	c := parse(t, vscode, opts)
	require.Equal(t, []toolbox.Entry{
		{ID: "api", Name: "api", Server: mcppool.Server{URL: "https://example.com/mcp//x", Header: map[string]string{"X-Key": "k-key", "X-Region": "eu"}}},
		{ID: "old", Name: "old", Server: mcppool.Server{URL: "https://example.com/events"}},
		{ID: "run", Name: "run", Server: mcppool.Server{Command: "srv", Args: []string{"/* no */", "a,]", `",}`}}},
	}, c.Entries)
	require.Equal(t, []string{`server "old": type: is sse, which is spoken only where the url's path ends in "/sse"`}, warnings(c))
	_, err := toolbox.ParseConfig([]byte(vscode), nil)
	require.EqualError(t, err, `toolbox: server "api": headers.X-Key: variable "input:key" has no value and no default`)
}

func TestEveryFaultOfAFileIsNamed(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", ``, "toolbox: line 1, column 1: unexpected end of JSON input"},
		{"not JSON", "{\n  \"mcpServers\": {,}\n}", "toolbox: line 2, column 18: invalid character ',' looking for beginning of object key string"},
		{"cut off", `{"mcpServers": {"a"`, "toolbox: line 1, column 19: unexpected end of JSON input"},
		{"comment not closed", `{"mcpServers": {} /* }`, "toolbox: line 1, column 19: invalid character '/' after object key:value pair"},
		{"not an object", `[]`, "toolbox: isn't a JSON object"},
		{"null", `null`, "toolbox: isn't a JSON object"},
		{"no servers", `{}`, `toolbox: has neither "mcpServers" nor "servers"`},
		{"servers not an object", `{"servers": []}`, "toolbox: servers: isn't a JSON object"},
		{"in both", `{"servers": {"a": {"command":"x"}}, "mcpServers": {"a": {"command":"x"}}}`, `toolbox: servers: has the server "a", and so has mcpServers`},
		{"inputs", `{"servers": {}, "inputs": {}}`, "toolbox: inputs: isn't a list of objects with id and default"},
		{"no id", `{"mcpServers": {"": {"command":"x"}}}`, "toolbox: a server's id is empty"},
		{"entry", `{"mcpServers": {"a": "x"}}`, `toolbox: server "a": isn't a JSON object`},
		{"nothing to run", `{"mcpServers": {"a": {}}}`, `toolbox: server "a": command: is missing or empty`},
		{"stdio without command", `{"mcpServers": {"a": {"type":"stdio","url":"http://x"}}}`, `toolbox: server "a": command: is missing or empty`},
		{"http without url", `{"mcpServers": {"a": {"type":"http","command":"x"}}}`, `toolbox: server "a": url: is missing or empty`},
		{"both", `{"mcpServers": {"a": {"command":"x","url":"http://x"}}}`, `toolbox: server "a": has both command and url`},
		{"type", `{"mcpServers": {"a": {"command":"x","type":"ws"}}}`, `toolbox: server "a": type: is "ws": stdio, http, streamable-http and sse are known`},
		{"command", `{"mcpServers": {"a": {"command":1}}}`, `toolbox: server "a": command: isn't a string`},
		{"args", `{"mcpServers": {"a": {"command":"x","args":"y"}}}`, `toolbox: server "a": args: isn't a list of strings`},
		{"env", `{"mcpServers": {"a": {"command":"x","env":["A=1"]}}}`, `toolbox: server "a": env: isn't an object of strings`},
		{"env value", `{"mcpServers": {"a": {"command":"x","env":{"A":true}}}}`, `toolbox: server "a": env.A: isn't a string`},
		{"disabled", `{"mcpServers": {"a": {"command":"x","disabled":"no"}}}`, `toolbox: server "a": disabled: isn't true or false`},
		{"unset in command", `{"mcpServers": {"a": {"command":"${X}"}}}`, `toolbox: server "a": command: variable "X" isn't set and has no default`},
		{"unset in args", `{"mcpServers": {"a": {"command":"x","args":["b","k=${X}"]}}}`, `toolbox: server "a": args[1]: variable "X" isn't set and has no default`},
		{"unset in env", `{"mcpServers": {"a": {"command":"x","env":{"T":"${env:X}"}}}}`, `toolbox: server "a": env.T: variable "X" isn't set and has no default`},
		{"unset in cwd", `{"mcpServers": {"a": {"command":"x","cwd":"${X}"}}}`, `toolbox: server "a": cwd: variable "X" isn't set and has no default`},
		{"unset in url", `{"mcpServers": {"a": {"url":"http://${X}"}}}`, `toolbox: server "a": url: variable "X" isn't set and has no default`},
		{"unset in headers", `{"mcpServers": {"a": {"url":"http://x","headers":{"H":"${X}"}}}}`, `toolbox: server "a": headers.H: variable "X" isn't set and has no default`},
		{"not closed", `{"mcpServers": {"a": {"command":"${X"}}}`, `toolbox: server "a": command: has "${" without "}"`},
		{"not a name", `{"mcpServers": {"a": {"command":"${a b}"}}}`, `toolbox: server "a": command: variable "a b" isn't a variable's name: ${NAME}, ${NAME:-default}, ${env:NAME} and ${input:id} are known`},
		{"several", `{"mcpServers": {"b": {}, "a": {"command":"${X}${Y}"}}}`,
			"toolbox: server \"a\": command: variable \"X\" isn't set and has no default\n" +
				"toolbox: server \"a\": command: variable \"Y\" isn't set and has no default\n" +
				"toolbox: server \"b\": command: is missing or empty"},
	} {
		_, err := toolbox.ParseConfig([]byte(c.text), env("SET", "secret"))
		require.EqualError(t, err, c.want, c.name)
		require.ErrorAs(t, err, new(*toolbox.ConfigError), c.name)
	}
}

func TestVariablesAreReplaced(t *testing.T) {
	opts := env("A", "1", "EMPTY", "", "NESTED", "${A}")
	for in, want := range map[string]string{
		"${A}":             "1",
		"x${A}y${A}z":      "x1y1z",
		"${EMPTY}":         "",
		"${EMPTY:-d}":      "d",
		"${NO:-}":          "",
		"${NO:-a:-b}":      "a:-b",
		"${env:NO:-d}":     "d",
		"${NESTED}":        "${A}",
		"$A $$ $":          "$A $$ $",
		"$${A}":            "$1",
		"{A}":              "{A}",
		"${NO:-http://x/}": "http://x/",
	} {
		text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": "c", "args": []string{in}}}})
		require.NoError(t, err)
		require.Equal(t, []string{want}, parse(t, string(text), opts).Entries[0].Server.Args, in)
	}
}

func TestEntriesOfAFileCanBeEdited(t *testing.T) {
	opts := env()
	opts.Edit = func(e *toolbox.Entry) {
		if e.ID == "browser" {
			e.Server.Policy.Mode = mcppool.Exclusive
		}
		e.Timeout = time.Minute
		e.ID = "another"
	}
	c := parse(t, `{"mcpServers": {"browser": {"command": "b"}, "other": {"command": "o"}}}`, opts)
	require.Equal(t, []toolbox.Entry{
		{ID: "browser", Name: "browser", Timeout: time.Minute, Server: mcppool.Server{Command: "b", Policy: mcppool.Policy{Mode: mcppool.Exclusive}}},
		{ID: "other", Name: "other", Timeout: time.Minute, Server: mcppool.Server{Command: "o"}},
	}, c.Entries)
}

func TestTheVariablesOfADisabledServerNeedNotBeSet(t *testing.T) {
	c := parse(t, `{"mcpServers": {"a": {"command": "${NOT_SET_ANYWHERE}", "disabled": true}}}`, env())
	require.True(t, c.Entries[0].Disabled)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestOfSeveralFilesTheLaterOneWins(t *testing.T) {
	dir := t.TempDir()
	user, project := filepath.Join(dir, "user.json"), filepath.Join(dir, "project.json")
	write(t, user, `{"mcpServers": {"a": {"command": "old", "env": {"A": "1"}}, "b": {"command": "b"}}, "theme": 1}`)
	write(t, project, `{"servers": {"a": {"command": "new"}, "c": {"command": "c"}}}`)
	c, err := toolbox.LoadConfig(nil, user, project)
	require.NoError(t, err)
	require.Equal(t, []toolbox.Entry{
		{ID: "a", Name: "a", Server: mcppool.Server{Command: "new"}},
		{ID: "b", Name: "b", Server: mcppool.Server{Command: "b"}},
		{ID: "c", Name: "c", Server: mcppool.Server{Command: "c"}},
	}, c.Entries)
	require.Equal(t, []string{user + ": theme: is unknown here and was read over"}, warnings(c))

	write(t, project, `{"servers": {"a": {"command": "${NOT_SET_ANYWHERE}"}}}`)
	_, err = toolbox.LoadConfig(nil, user, filepath.Join(dir, "none.json"), project)
	require.EqualError(t, err, "toolbox: "+filepath.Join(dir, "none.json")+": can't be read: no such file or directory\n"+
		"toolbox: "+project+": server \"a\": command: variable \"NOT_SET_ANYWHERE\" isn't set and has no default")
}

func TestAStaticCatalogRefusesEntriesItCouldNotTellApart(t *testing.T) {
	_, err := toolbox.NewStatic(toolbox.Entry{ID: "a"}, toolbox.Entry{ID: "a"})
	require.EqualError(t, err, `toolbox: the ID "a" comes twice`)
	_, err = toolbox.NewStatic(toolbox.Entry{})
	require.EqualError(t, err, "toolbox: an entry has no ID")
}

func TestCommentsAndTrailingCommasBecomeBlanks(t *testing.T) {
	for in, want := range map[string]string{
		"[1,]":            "[1 ]",
		"[1 , /* x */ ]":  "[1           ]",
		"{\"a\":1,\n}":    "{\"a\":1 \n}",
		"[1,,]":           "[1,,]",
		"[,]":             "[,]",
		"{\"a\":,}":       "{\"a\":,}",
		"[\"a,]\",]":      "[\"a,]\" ]",
		"[1]// é\n":       "[1]     \n",
		"[1]//":           "[1]  ",
		"[1/2]":           "[1/2]",
		"/*/ [1] */[2]":   "          [2]",
		"\xef\xbb\xbf[1]": "   [1]",
		"[\"\\\"//\",1]":  "[\"\\\"//\",1]",
		"[/* \n */1]":     "[   \n   1]",
		"[[1,],[2,],]":    "[[1 ],[2 ] ]",
		"[1, // c\r\n ]":  "[1      \r\n ]",
		"[\"not closed,]": "[\"not closed,]",
	} {
		require.Equal(t, want, string(toolbox.PlainJSON([]byte(in))), in)
	}
}

func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{vscode, `{"a":[1,2,],}`, "[1]/*", `["\\",]`, "[,]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out := toolbox.PlainJSON(text)
		if len(out) != len(text) || bytes.Count(out, []byte("\n")) != bytes.Count(text, []byte("\n")) {
			t.Fatal("a place has moved")
		}
		if json.Valid(text) && !bytes.Equal(out, text) {
			t.Fatalf("JSON was changed: %q", out)
		}
		if again := toolbox.PlainJSON(out); !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q", out, again)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(vscode))
	f.Add([]byte(`{"mcpServers": {"a": {"command": "${A:-x}", "args": ["${B}"], "env": {"C": 1}}}}`))
	f.Add([]byte(`{"servers": {"a": {"url": "${input:x}", "type": "sse"}}, "inputs": [{"id": "x", "default": null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := toolbox.ParseConfig(text, env("A", "secret-value"))
		if err != nil {
			if strings.Contains(err.Error(), "secret-value") {
				t.Fatal(err)
			}
			return
		}
		c.Static()
		for _, e := range c.Entries {
			if !e.Disabled && (e.Server.Command == "") == (e.Server.URL == "") {
				t.Fatalf("%+v", e)
			}
		}
		again, err := toolbox.ParseConfig(text, env("A", "secret-value"))
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

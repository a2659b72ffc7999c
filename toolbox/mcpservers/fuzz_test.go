package mcpservers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// planted is the value of each variable and input. No error may hold it.
const planted = "planted-hunter2"

func FuzzParse(f *testing.F) {
	for name := range samples {
		data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		require.NoError(f, err)
		f.Add(filepath.Base(name), data)
	}
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "${A:-x}", "url": "${B}", "env": {"C": "$D"}}}}`,
		`{"servers": {"a": {"url": "https://${input:x}", "type": "sse"}}, "inputs": [{"id": "x", "default": null}]}`,
		"a: &a [*a]", "<<: {a: {command: x}}", "[[mcp_servers.a]]\ncommand=1", "\xff\xfe", "{\"a\":" + strings.Repeat("[", 100),
	} {
		f.Add("", []byte(text))
		f.Add("a.yaml", []byte(text))
	}
	dir := f.TempDir()
	opts := &mcpservers.Options{
		Getenv:          func(name string) (string, bool) { return planted, !strings.HasPrefix(name, "UNSET") },
		Input:           func(mcpservers.Prompt) (string, error) { return planted, nil },
		Home:            dir,
		MaxSize:         1 << 16,
		WorkspaceFolder: dir,
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		file, err := mcpservers.Parse(name, data, opts)
		if err != nil {
			oneSafeLine(t, err.Error())
			return
		}
		seen := make(map[string]bool)
		for _, e := range file.Entries {
			require.False(t, seen[e.Name], "two of one name")
			seen[e.Name] = true
			switch {
			case e.Err != nil:
				oneSafeLine(t, e.Err.Error())
				require.False(t, e.Disabled)
			case !e.Disabled:
				require.NotEqual(t, e.Server.Command == "", e.Server.URL == "", "%+v", e)
			}
			e.Tools.Allows("tool")
		}
		for _, w := range file.Warnings {
			oneSafeLine(t, w.String())
		}
		again, err := mcpservers.Parse(name, data, opts)
		require.NoError(t, err)
		require.Equal(t, file, again)
	})
}

func oneSafeLine(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, planted)
	require.NotContains(t, text, "\n")
}

func FuzzParseEnv(f *testing.F) {
	for _, text := range []string{"A=1\n", "export A='x\ny'", `A="\n"`, "A", "=", "A=\"", "# x\nA=b # c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := mcpservers.ParseEnv(text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for name := range pairs {
			require.NotEmpty(t, name)
			require.NotContains(t, name, "=")
		}
	})
}

func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,],}`, "[1]/*", `["\\",]`, "[,]", "// x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out := mcpservers.PlainJSON(text)
		require.Len(t, out, len(text))
		require.Equal(t, strings.Count(string(text), "\n"), strings.Count(string(out), "\n"), "a line has moved")
		require.Equal(t, out, mcpservers.PlainJSON(out))
	})
}

package mcpservers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

func TestAnEmptyFileHasNoServersAndIsNoError(t *testing.T) {
	for name, texts := range map[string][]string{
		"a.json": {"", " \n", "{}", "null", "// nothing yet\n", "\ufeff{}", `{"mcpServers": {}}`, `{"mcpServers": null}`, `{"servers": {}, "inputs": []}`},
		"a.toml": {"", "# nothing\n", "[mcp_servers]\n"},
		"a.yaml": {"", "# nothing\n", "{}", "mcpServers:\n", "mcpServers: []\n"},
		"":       {"", "{}"},
	} {
		for _, text := range texts {
			f := parseAs(t, name, text, nil)
			require.Empty(t, f.Entries, "%s %q", name, text)
		}
	}
	require.Empty(t, parse(t, "{}").Warnings)
}

func TestCommentsTrailingCommasAndAByteOrderMarkAreRead(t *testing.T) {
	f := parse(t, "\ufeff{ // the servers\n  \"mcpServers\": {\n    /* one */ \"a\": {\"command\": \"x\", \"args\": [\"//\", \"/*\", ],},\n  },\n}\n")
	require.Equal(t, []string{"//", "/*"}, f.Entries[0].Server.Args)
	require.Equal(t, 3, f.Entries[0].Line)
}

func TestAFileOfAnotherFormatThanItsNameSaysIsRecognised(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.json", "[mcp_servers.a]\ncommand = \"x\"\n", "mcpservers: a.json: is TOML: name it .toml"},
		{"a.json", "mcpServers:\n  a:\n    command: x\n", "mcpservers: a.json: is YAML: name it .yaml"},
		{"a.toml", `{"mcpServers": {}}`, "mcpservers: a.toml: is JSON: name it .json"},
		{"a.json", "\xff\xfe{\x00}\x00", "mcpservers: a.json: is UTF-16: save it as UTF-8"},
		{"a.yaml", "a: \xff", "mcpservers: a.yaml: isn't UTF-8 text: save it as UTF-8"},
	} {
		_, err := mcpservers.Parse(c.name, []byte(c.text), nil)
		require.EqualError(t, err, c.want)
	}
	require.Len(t, parseAs(t, "a.yaml", `{"mcpServers": {"a": {"command": "x"}}}`, nil).Entries, 1, "JSON is YAML")
}

func TestTextWithoutANameSaysItsFormatItself(t *testing.T) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x"}}}`,
		"[mcp_servers.a]\ncommand = \"x\"\n",
		"mcpServers:\n  a:\n    command: x\n",
	} {
		f := parseAs(t, "", text, nil)
		require.Len(t, f.Entries, 1, text)
		require.Equal(t, "x", f.Entries[0].Server.Command, text)
	}
}

func TestASyntaxErrorNamesItsLineAndQuotesNoValue(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"hunter2\"}\n", "mcpservers: a.json:3: isn't JSON: "},
		{"a.json", "{\n\"env\": hunter2}", "mcpservers: a.json:2: isn't JSON: "},
		{"a.json", "{\"mcpServers\": {", "mcpservers: a.json:1: isn't JSON: it ends too early: a quote or a bracket isn't closed"},
		{"a.json", "{} {}", "mcpservers: a.json:1: isn't JSON: something follows after the end: one object is a file"},
		{"a.json", `[{"command": "hunter2"}]`, `mcpservers: a.json:1: isn't an object: write {"mcpServers": {...}}`},
		{"a.toml", "[mcp_servers.a]\ncommand = hunter2\n", "mcpservers: a.toml:2: isn't TOML: texts stand in quotes, and a line is [table] or name = value"},
		{"a.toml", "a = 1\n[a.b]\n", "mcpservers: a.toml:2: isn't TOML that can be read here: "},
		{"a.yaml", "mcpServers:\n  a:\n    env:\n      TOKEN: *hunter2\n", "mcpservers: a.yaml"},
		{"a.yaml", "mcpServers:\n  a:\n\tcommand: hunter2\n", "mcpservers: a.yaml:3: isn't YAML: "},
	} {
		_, err := mcpservers.Parse(c.name, []byte(c.text), nil)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestYAMLAnchorsAndMergesAreReadWithoutGrowing(t *testing.T) {
	f := parseAs(t, "a.yaml", `
base: &base {command: x, args: [one]}
mcpServers:
  a:
    <<: *base
    args: [two]
  b: *base
`, nil)
	require.Equal(t, "x", f.Entries[0].Server.Command)
	require.Equal(t, []string{"two"}, f.Entries[0].Server.Args)
	require.Equal(t, []string{"one"}, f.Entries[1].Server.Args)

	_, err := mcpservers.Parse("a.yaml", []byte("a: &a\n  b: *a\n"), nil)
	require.Error(t, err)

	var bomb strings.Builder
	bomb.WriteString("l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 40 {
		l, below := string(rune('A'+i/10))+string(rune('0'+i%10)), "l0"
		if i > 0 {
			below = string(rune('A'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		}
		bomb.WriteString(l + ": &" + l + " [" + strings.Repeat("*"+below+",", 9) + "*" + below + "]\n")
	}
	_, _ = mcpservers.Parse("a.yaml", []byte(bomb.String()), nil)
}

func TestWhatIsNestedWithoutEndIsRefused(t *testing.T) {
	const deep = 200_000
	for name, text := range map[string]string{
		"a.json": strings.Repeat(`{"a":`, deep),
		"b.json": strings.Repeat(`[`, deep),
		"a.toml": "a = " + strings.Repeat(`[`, deep),
		"b.toml": "a" + strings.Repeat(`.a`, deep) + " = 1",
		"c.toml": "a = " + strings.Repeat(`{a=`, 90_000),
		"d.toml": "a = " + strings.Repeat(`[`, 90_000),
		"a.yaml": strings.Repeat(`[`, deep),
		"b.yaml": strings.Repeat("- ", deep),
		"c.json": `{"a": ` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`,
		"e.toml": "a = " + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100),
		"c.yaml": strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100),
	} {
		_, err := mcpservers.Parse(name, []byte(text), nil)
		require.Error(t, err, name)
	}
}

func TestAFileThatCanNotBeReadIsAnErrorWithItsName(t *testing.T) {
	dir := t.TempDir()
	_, err := mcpservers.Read(filepath.Join(dir, "none.json"), nil)
	require.EqualError(t, err, "mcpservers: "+filepath.Join(dir, "none.json")+": can't be read: no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = mcpservers.Read(dir, nil)
	require.EqualError(t, err, "mcpservers: "+dir+": is a directory: name the file in it")
	path := filepath.Join(dir, "big.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {}}`), 0o600))
	_, err = mcpservers.Read(path, &mcpservers.Options{MaxSize: 10})
	require.EqualError(t, err, "mcpservers: "+path+": is larger than Options.MaxSize: raise it if the file is meant")
	_, err = mcpservers.Parse(path, []byte(`{"mcpServers": {}}`), &mcpservers.Options{MaxSize: 10})
	require.ErrorContains(t, err, "is larger than")
	_, err = mcpservers.Read(path, &mcpservers.Options{MaxSize: -1})
	require.NoError(t, err)
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
		require.Equal(t, want, string(mcpservers.PlainJSON([]byte(in))), in)
	}
}

func TestAShortTextCanNotAskForMuchMemory(t *testing.T) {
	bomb := &strings.Builder{}
	bomb.WriteString("a: &a [" + strings.Repeat("x, ", 1000) + "x]\nmcpServers:\n")
	for i := range 2000 {
		fmt.Fprintf(bomb, "  s%d: {command: x, args: *a}\n", i)
	}
	_, err := mcpservers.Parse("a.yaml", []byte(bomb.String()), nil)
	require.ErrorContains(t, err, "aliases (*) repeat too much")

	var many strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&many, "[mcp_servers.s%d]\n", i)
	}
	_, err = mcpservers.Parse("a.toml", []byte(many.String()), nil)
	require.EqualError(t, err, "mcpservers: a.toml:1001: has more servers than are read of one file: split it")

	long := strings.Repeat("x", 1<<20)
	f := parseAs(t, "a.json", `{"mcpServers": {"a": {"command": "x", "args": ["`+strings.Repeat("${A}", 100_000)+`"]}}}`,
		&mcpservers.Options{Getenv: func(string) (string, bool) { return long, true }})
	require.ErrorContains(t, f.Entries[0].Err, "args[0]: is one variable too many")

	dir := t.TempDir()
	write(t, filepath.Join(dir, ".env"), "A="+long+"\n")
	servers := strings.Repeat(`{"name": "s", "command": "x", "envFile": ".env"},`, 20)
	for i := range 20 {
		servers = strings.Replace(servers, `"s"`, fmt.Sprintf(`"s%d"`, i), 1)
	}
	f = parseAs(t, filepath.Join(dir, "a.json"), `{"mcpServers": [`+servers+`]}`, nil)
	require.NoError(t, f.Entries[0].Err)
	require.ErrorContains(t, f.Entries[19].Err, "envFile: names a file that is one too many")

	f = parse(t, `{"excludeMCPServers": [`+strings.Repeat(`"b",`, 2000)+`], "mcpServers": {"a": {"command": "x"}}}`)
	require.Error(t, f.Entries[0].Err)

	f = parse(t, `{"mcpServers": {"a": {"command": "x", `+strings.Repeat(`"z": 1, `, 5000)+`"args": [`+strings.Repeat("[],", 5000)+`]}}}`)
	require.Less(t, len(f.Entries[0].Err.Error()), 4000)
	require.LessOrEqual(t, len(f.Warnings), 1000)
}
